import type { Io } from "../program.ts";

/**
 * Writes a part of a long output to stdout, and waits while its reader is slower, so that the output does not collect
 * in memory. Returns false when the reader has closed it: the rest need not be made.
 */
export async function writeOutput({ stdout, outputClosed }: Io, text: string): Promise<boolean> {
  if (outputClosed?.aborted) return false;
  await new Promise<void>(resolve => {
    const isAccepted = stdout.write(text, () => resolve());
    if (isAccepted !== false) resolve();
  });
  return outputClosed?.aborted !== true;
}
