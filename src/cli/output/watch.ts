import type { Command } from "commander";
import { isDocstokgError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import { ExitCode } from "../exit-code.ts";
import type { Flags, Io } from "../program.ts";
import { TerminalFrame } from "./terminal-frame.ts";

/** As often as running processes publish their status. */
const REFRESH_MS = 1000;

export interface WatchOptions {
  /** Reads and formats the current state. */
  readonly render: () => Promise<string>;
  /** With JSON each refresh is one line, on a terminal too. */
  readonly isJson: boolean;
}

/** A state that a command prints once or repeatedly: as text, or as JSON with `--json`. */
export interface View<Value> {
  readonly read: () => Promise<Value>;
  readonly text: (value: Value) => string;
}

export function addWatchFlags(command: Command): void {
  command
    .option("--watch", "refresh every second until Ctrl-C")
    .option("--json", "print JSON; with --watch one line per refresh");
}

export async function showView<Value>(flags: Flags, io: Io, { read, text }: View<Value>): Promise<ExitCode> {
  const isJson = flags["json"] === true;
  const isWatched = flags["watch"] === true;
  const render = async () => {
    const value = await read();
    return isJson ? `${JSON.stringify(value, undefined, isWatched ? 0 : 2)}\n` : text(value);
  };
  if (isWatched) return watch(io, { render, isJson });
  io.stdout.write(await render());
  return ExitCode.ok;
}

/**
 * Prints the state every second, until Ctrl-C (exit code 130) or until the reader closes stdout (exit code 0).
 * If the store fails, the error is printed instead (with JSON on stderr), and the next refresh tries again.
 */
export async function watch(io: Io, { render, isJson }: WatchOptions): Promise<ExitCode> {
  const { stdout, time = systemTime, outputClosed } = io;
  const interrupted = new AbortController();
  let exitCode: ExitCode = ExitCode.ok;
  const stopListening = io.onInterrupt?.(() => {
    exitCode = ExitCode.interrupted;
    interrupted.abort();
  });
  const endSignal =
    outputClosed === undefined ? interrupted.signal : AbortSignal.any([interrupted.signal, outputClosed]);
  const frame = new TerminalFrame(stdout, stdout.isTTY === true && !isJson);
  try {
    while (!endSignal.aborted) {
      const { isStoreError, text } = await rendered(render);
      if (isStoreError && isJson) io.stderr.write(text);
      else if (!endSignal.aborted) frame.show(text);
      await delay(time, REFRESH_MS, endSignal);
    }
  } finally {
    stopListening?.();
  }
  return exitCode;
}

async function rendered(
  render: () => Promise<string>,
): Promise<{ readonly isStoreError: boolean; readonly text: string }> {
  try {
    return { isStoreError: false, text: await render() };
  } catch (error) {
    if (isDocstokgError(error) && error.code === "DOCSTOKG_STORE")
      return { isStoreError: true, text: `${error.message}\n` };
    throw error;
  }
}

/** Resolves after `ms`, or as soon as the signal is aborted. */
function delay(time: Time, ms: number, endSignal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (endSignal.aborted) return Promise.resolve();
  let timer: Timer | undefined;
  const done = () => {
    timer?.cancel();
    endSignal.removeEventListener("abort", done);
    resolve();
  };
  timer = time.setTimer(ms, done);
  endSignal.addEventListener("abort", done);
  return promise;
}
