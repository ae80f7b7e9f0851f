import { ExitCode } from "../exit-code.ts";

/**
 * Runs work that can be told to stop. The first Ctrl-C aborts its signal, and whatever is under way is left as it can be
 * gone on with; a second one ends the process as it would without us.
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<ExitCode>): Promise<ExitCode> {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  try {
    return await work(signal);
  } catch (error) {
    if (signal.aborted) return ExitCode.interrupted;
    throw error;
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
  }
}
