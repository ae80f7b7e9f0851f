import type { HostQueueStatus } from "../../harvest/host-queue-status.ts";
import type { Time, Timer } from "../../time/time.ts";
import { formatDuration } from "../output/duration.ts";
import { formatBytes } from "../output/format.ts";
import { TerminalFrame } from "../output/terminal-frame.ts";
import type { Output } from "../program.ts";
import type { RunCounts } from "./run-counts.ts";

export interface ProgressOptions {
  readonly out: Output;
  readonly time: Time;
  readonly counts: RunCounts;
  readonly queues: () => readonly HostQueueStatus[];
  /** Estimated time until the limits have admitted the remaining works; undefined if it is not known. */
  readonly timeLeftMs: () => number | undefined;
  /** No progress is drawn; logged lines are still printed. */
  readonly isQuiet: boolean;
  /** False if stderr is not a terminal, or if NO_COLOR or TERM=dumb is set. */
  readonly hasColour: boolean;
}

/** The estimate reads every queue, so it is made less often than a frame is drawn. */
const ESTIMATE_INTERVAL_US = 1_000_000;

/** A terminal is redrawn often; a log file gets a line every five seconds. */
const TERMINAL_INTERVAL_MS = 200;
const LOG_INTERVAL_MS = 5000;
const HOST_QUEUES_SHOWN = 6;
const BAR_CELLS = 24;

/** The progress of a run: on a terminal a few lines that are redrawn in place, elsewhere one line every five seconds. */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #startedUs: number;
  readonly #frame: TerminalFrame;
  #timer: Timer | undefined;
  /** How many works were settled in the last line of a log; undefined before the first line. */
  #settledInLog: number | undefined;
  #estimate: { readonly atUs: number; readonly leftMs: number | undefined } | undefined;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#startedUs = options.time.monotonicUs();
    this.#frame = new TerminalFrame(options.out, options.out.isTTY === true);
  }

  start(): void {
    if (!this.#options.isQuiet) this.#arm();
  }

  /** Prints a line that is not redrawn. */
  log(text: string): void {
    this.#frame.clear();
    this.#options.out.write(`${text}\n`);
    if (this.#timer !== undefined && this.#isTerminal) this.#draw(this.#leftMs());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#frame.clear();
    // Otherwise a log would end with the counts of some seconds before the end.
    if (this.#settledInLog !== undefined && this.#settledInLog < this.#options.counts.settledWorks)
      this.#draw(undefined);
  }

  get #isTerminal(): boolean {
    return this.#options.out.isTTY === true;
  }

  #arm(): void {
    this.#timer = this.#options.time.setTimer(this.#isTerminal ? TERMINAL_INTERVAL_MS : LOG_INTERVAL_MS, () => {
      this.#draw(this.#leftMs());
      this.#arm();
    });
  }

  #draw(leftMs: number | undefined): void {
    const { counts, queues, time, hasColour, out } = this.#options;
    const text = headline(counts, (time.monotonicUs() - this.#startedUs) / 1000, leftMs);
    // The bar is shortened so that the first line fits the terminal.
    const cells = Math.min(BAR_CELLS, (out.columns ?? 80) - text.length - 2);
    const first = cells > 0 ? `${bar(counts, cells, hasColour)} ${text}` : text;
    if (!this.#isTerminal) this.#settledInLog = counts.settledWorks;
    const lines = this.#isTerminal ? [first, ...hostQueueLines(queues())] : [text];
    this.#frame.show(lines.map(line => `${line}\n`).join(""));
  }

  #leftMs(): number | undefined {
    const atUs = this.#options.time.monotonicUs();
    if (this.#estimate === undefined || atUs - this.#estimate.atUs >= ESTIMATE_INTERVAL_US)
      this.#estimate = { atUs, leftMs: this.#options.timeLeftMs() };
    return this.#estimate.leftMs;
  }
}

function headline(
  { settledWorks: settled, failed, wanted, bytes }: RunCounts,
  elapsedMs: number,
  leftMs: number | undefined,
): string {
  const perSecond = elapsedMs > 0 ? (settled * 1000) / elapsedMs : 0;
  const left = leftMs === undefined || settled >= wanted ? "" : `, about ${formatDuration(leftMs)} left`;
  const pace = `${perSecond >= 10 ? Math.round(perSecond) : perSecond.toFixed(1)}/s`;
  return `${settled}/${wanted} works, ${failed} failed, ${pace}, ${formatBytes(bytes)}${left}`;
}

function bar({ settledWorks, wanted }: RunCounts, cells: number, hasColour: boolean): string {
  const settled = Math.min(wanted, settledWorks);
  const fullCells = wanted === 0 ? 0 : Math.floor((settled * cells) / wanted);
  const full = "█".repeat(fullCells);
  return `${hasColour ? `\u001b[32m${full}\u001b[0m` : full}${"░".repeat(cells - fullCells)}`;
}

function hostQueueLines(queues: readonly HostQueueStatus[]): readonly string[] {
  return queues.slice(0, HOST_QUEUES_SHOWN).map(({ host, role, inFlightRequests, waiting, freeInMs }) => {
    const next = waiting > 0 && freeInMs > 0 ? `, next in ${formatDuration(freeInMs)}` : "";
    return `  ${host} ${role}: ${inFlightRequests} in flight, ${waiting} queued${next}`;
  });
}
