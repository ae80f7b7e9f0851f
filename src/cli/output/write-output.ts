import type { Io } from "../program.ts";

/**
 * Writes a part of a long output to stdout. Waits while the reader of stdout is slower, so that the output does not
 * collect in memory. Returns false if the reader has closed stdout: the command can stop.
 */
export async function writeOutput({ stdout, outputClosed }: Io, text: string): Promise<boolean> {
  if (outputClosed?.aborted) return false;
  await new Promise<void>(resolve => {
    const isAccepted = stdout.write(text, () => resolve());
    if (isAccepted !== false) resolve();
  });
  return outputClosed?.aborted !== true;
}
