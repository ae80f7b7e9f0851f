import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import { formatBytes } from "../output/format.ts";
import { TerminalFrame } from "../output/terminal-frame.ts";
import type { Io } from "../program.ts";

/** At most ten repaints per second. */
const REPAINT_US = 100_000;

/** On a terminal, one line with the downloads in progress, repainted in place. Elsewhere nothing is printed. */
export class ProgressLine {
  readonly #frame: TerminalFrame | undefined;
  readonly #time: Time;
  readonly #files = new Map<string, string>();
  #paintedUs = Number.NEGATIVE_INFINITY;

  constructor({ stderr }: Pick<Io, "stderr">, time: Time = systemTime) {
    this.#frame = stderr.isTTY ? new TerminalFrame(stderr, true) : undefined;
    this.#time = time;
  }

  update(id: string, bytes: number, totalBytes: number | undefined): void {
    if (this.#frame === undefined) return;
    const percent = Math.floor((100 * bytes) / Math.max(1, totalBytes ?? 1));
    this.#files.set(id, totalBytes === undefined ? formatBytes(bytes) : `${percent} % of ${formatBytes(totalBytes)}`);
    const nowUs = this.#time.monotonicUs();
    if (nowUs - this.#paintedUs < REPAINT_US) return;
    this.#paintedUs = nowUs;
    this.#frame.show([...this.#files].map(([name, done]) => `${name} ${done}`).join("   "));
  }

  done(id: string): void {
    this.#files.delete(id);
    this.clear();
  }

  /** Must be called before anything else is printed on the terminal. */
  clear(): void {
    this.#frame?.clear();
  }
}
