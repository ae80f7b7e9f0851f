/** What a command tells the shell. */
export const ExitCode = {
  ok: 0,
  /** The work was done in part: some of it failed. */
  partial: 1,
  /** The command line or the configuration is wrong; nothing was done. */
  usage: 2,
  /** Ctrl-C, as shells count it: 128 and the number of the signal. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
