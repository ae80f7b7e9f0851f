/** The exit codes of both programs. */
export const ExitCode = {
  ok: 0,
  /** Some of the work failed; the results of the rest are kept. */
  partial: 1,
  /** A usage or configuration error; nothing was done. */
  usage: 2,
  /** Ctrl-C or SIGTERM. 130 is 128 + 2, the code that shells report for SIGINT. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
