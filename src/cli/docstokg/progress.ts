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
  readonly tally: RunCounts;
  readonly queues: () => readonly HostQueueStatus[];
  /** No progress is drawn; logged lines are still printed. */
  readonly isQuiet: boolean;
  /** False if stderr is not a terminal, or if NO_COLOR is set. */
  readonly hasColour: boolean;
}

/** A terminal is redrawn often; a log file gets a line every five seconds. */
const TERMINAL_MS = 200;
const LOG_MS = 5000;
const HOST_QUEUES_SHOWN = 6;
const BAR_CELLS = 24;

/** The progress of a run: on a terminal a few lines that are redrawn in place, elsewhere one line every five seconds. */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #startedUs: number;
  readonly #frame: TerminalFrame;
  #timer: Timer | undefined;

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
    if (this.#timer !== undefined && this.#isTerminal) this.#draw();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#frame.clear();
  }

  get #isTerminal(): boolean {
    return this.#options.out.isTTY === true;
  }

  #arm(): void {
    this.#timer = this.#options.time.setTimer(this.#isTerminal ? TERMINAL_MS : LOG_MS, () => {
      this.#draw();
      this.#arm();
    });
  }

  #draw(): void {
    const { tally, queues, time, hasColour } = this.#options;
    const text = headline(tally, (time.monotonicUs() - this.#startedUs) / 1000);
    const lines = this.#isTerminal ? [`${bar(tally, hasColour)} ${text}`, ...hostQueueLines(queues())] : [text];
    this.#frame.show(lines.map(line => `${line}\n`).join(""));
  }
}

function headline({ done, failed, wanted, bytes }: RunCounts, elapsedMs: number): string {
  const settled = done + failed;
  const perSecond = elapsedMs > 0 ? (settled * 1000) / elapsedMs : 0;
  const leftMs = settled === 0 ? undefined : ((wanted - settled) * elapsedMs) / settled;
  const left = leftMs === undefined ? "" : `, ${formatDuration(leftMs)} left`;
  const pace = `${perSecond >= 10 ? Math.round(perSecond) : perSecond.toFixed(1)}/s`;
  return `${settled}/${wanted} works, ${failed} failed, ${pace}, ${formatBytes(bytes)}${left}`;
}

function bar({ done, failed, wanted }: RunCounts, hasColour: boolean): string {
  const cells = wanted === 0 ? 0 : Math.floor(((done + failed) * BAR_CELLS) / wanted);
  const full = "█".repeat(cells);
  return `${hasColour ? `\u001b[32m${full}\u001b[0m` : full}${"░".repeat(BAR_CELLS - cells)}`;
}

function hostQueueLines(queues: readonly HostQueueStatus[]): readonly string[] {
  return queues.slice(0, HOST_QUEUES_SHOWN).map(({ host, role, inFlightRequests, waiting, freeInMs }) => {
    const next = waiting > 0 && freeInMs > 0 ? `, next in ${formatDuration(freeInMs)}` : "";
    return `  ${host} ${role}: ${inFlightRequests} in flight, ${waiting} queued${next}`;
  });
}
