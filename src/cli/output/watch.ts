import { stripVTControlCharacters } from "node:util";
import type { Command } from "commander";
import { isDocstokgError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time, Timer } from "../../time/time.ts";
import { ExitCode } from "../exit-code.ts";
import type { Io, Output } from "../program.ts";

/** As often as running processes say how they stand. */
const REFRESH_MS = 1000;

export interface WatchOptions {
  /** What is to be seen now. */
  readonly render: () => Promise<string>;
  /** On a terminal the former picture is drawn over; elsewhere, and for programs, one follows the other. */
  readonly isJson: boolean;
}

/** What a command shows, once or over and over: for people as a text, for programs as JSON. */
export interface View<Value> {
  readonly see: () => Promise<Value>;
  readonly text: (value: Value) => string;
}

/** The flags of a command that shows how things stand. */
export function addWatchFlags(command: Command): void {
  command
    .option("--watch", "once a second, until Ctrl-C")
    .option("--json", "print JSON; with --watch a line each time");
}

export async function show<Value>(
  options: Readonly<Record<string, unknown>>,
  io: Io,
  { see, text }: View<Value>,
): Promise<ExitCode> {
  const isJson = options["json"] === true;
  const isWatched = options["watch"] === true;
  const render = async () => {
    const value = await see();
    return isJson ? `${JSON.stringify(value, undefined, isWatched ? 0 : 2)}\n` : text(value);
  };
  if (isWatched) return watch(io, { render, isJson });
  io.stdout.write(await render());
  return ExitCode.ok;
}

/**
 * Shows the same once a second, until Ctrl-C (exit code 130) or until nobody reads it any more (0).
 * A store that is away is told of in the picture's place, for programs on stderr, and tried again with the next one.
 */
export async function watch(io: Io, { render, isJson }: WatchOptions): Promise<ExitCode> {
  const { stdout, time = systemTime, outputClosed } = io;
  const over = new AbortController();
  let exitCode: ExitCode = ExitCode.ok;
  const stopListening = io.onInterrupt?.(() => {
    exitCode = ExitCode.interrupted;
    over.abort();
  });
  const endSignal = outputClosed === undefined ? over.signal : AbortSignal.any([over.signal, outputClosed]);
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

/** Resolves early when there is nothing to wait for any more. */
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

/**
 * The last few lines of a terminal, written over again and again. Nothing of the terminal is changed for it, neither
 * cursor nor screen, so that nothing has to be put back however the process ends.
 */
class TerminalFrame {
  readonly #output: Output;
  readonly #isInPlace: boolean;
  #rows = 0;
  #isFirst = true;

  constructor(output: Output, isInPlace: boolean) {
    this.#output = output;
    this.#isInPlace = isInPlace;
  }

  show(text: string): void {
    if (!this.#isInPlace) {
      // Blank lines tell one picture from the next; what is one line needs none.
      const isBlock = text.indexOf("\n") < text.length - 1;
      this.#output.write(this.#isFirst || !isBlock ? text : `\n${text}`);
      this.#isFirst = false;
      return;
    }
    const { rows, lines } = this.#fitting(text.replace(/\n$/, "").split("\n"));
    const back = this.#rows > 0 ? `\r\x1b[${this.#rows}A` : "";
    // In one piece, and each line cleared behind its end: nothing flickers.
    this.#output.write(`${back}${lines.map(line => `${line}\x1b[K\n`).join("")}\x1b[J`);
    this.#rows = rows;
  }

  /** What has scrolled out of the terminal cannot be written over. */
  #fitting(lines: readonly string[]): { readonly rows: number; readonly lines: readonly string[] } {
    const { columns = 80, rows: rowsMax = 24 } = this.#output;
    const kept: string[] = [];
    let rows = 0;
    for (const line of lines) {
      const more = Math.max(1, Math.ceil(stripVTControlCharacters(line).length / columns));
      // One for the cursor, one for what is left out.
      if (rows + more > rowsMax - 2) {
        kept.push(`… and ${lines.length - kept.length} more lines`);
        rows += 1;
        break;
      }
      kept.push(line);
      rows += more;
    }
    return { rows, lines: kept };
  }
}
