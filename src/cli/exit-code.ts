/** The exit codes of both programs. */
export const ExitCode = {
  ok: 0,
  /** Some of the work failed; what succeeded is kept. */
  partial: 1,
  /** A usage or configuration error; nothing was done. */
  usage: 2,
  /** Ctrl-C or SIGTERM: 128 and the number of SIGINT, as shells report it. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
