import type { Command } from "commander";
import { isDocstokgError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
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
export function watch(io: Io, { render, isJson }: WatchOptions): Promise<ExitCode> {
  const { stdout, time = systemTime, outputClosed } = io;
  const frame = new TerminalFrame(stdout, stdout.isTTY === true && !isJson);
  return interruptible(io, async interrupted => {
    const endSignal = outputClosed === undefined ? interrupted : AbortSignal.any([interrupted, outputClosed]);
    while (!endSignal.aborted) {
      const state = await unlessAborted(rendered(render), endSignal);
      if (state?.isStoreError && isJson) io.stderr.write(state.text);
      else if (state !== undefined) frame.show(state.text);
      await delay(time, REFRESH_MS, endSignal);
    }
    return interrupted.aborted ? ExitCode.interrupted : ExitCode.ok;
  });
}

/** The result, or undefined as soon as the signal is aborted: a read may wait minutes for a server that is away. */
function unlessAborted<Value>(pending: Promise<Value>, endSignal: AbortSignal): Promise<Value | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Value | undefined>();
  const end = () => resolve(undefined);
  endSignal.addEventListener("abort", end);
  pending.then(resolve, reject).finally(() => endSignal.removeEventListener("abort", end));
  return promise;
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
