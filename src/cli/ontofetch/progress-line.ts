import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import { formatBytes } from "../output/format.ts";
import type { Io } from "../program.ts";

/** At most ten repaints per second. */
const REPAINT_US = 100_000;
const WIDTH = 100;

/** On a terminal, one line with the downloads in progress, repainted in place. Elsewhere nothing is printed. */
export class ProgressLine {
  readonly #write: ((text: string) => void) | undefined;
  readonly #time: Time;
  readonly #files = new Map<string, string>();
  #paintedUs = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor({ stderr }: Io, time: Time = systemTime) {
    const { isTTY = false } = stderr as { readonly isTTY?: boolean };
    this.#write = isTTY ? text => stderr.write(text) : undefined;
    this.#time = time;
  }

  bytes(id: string, bytes: number, totalBytes: number | undefined): void {
    if (this.#write === undefined) return;
    const part =
      totalBytes === undefined
        ? formatBytes(bytes)
        : `${Math.floor((100 * bytes) / Math.max(1, totalBytes))} % of ${formatBytes(totalBytes)}`;
    this.#files.set(id, part);
    const nowUs = this.#time.monotonicUs();
    if (nowUs - this.#paintedUs < REPAINT_US) return;
    this.#paintedUs = nowUs;
    const text = [...this.#files].map(([name, done]) => `${name} ${done}`).join("   ");
    this.#write(`\r\u001b[K${text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text}`);
    this.#isShown = true;
  }

  done(id: string): void {
    this.#files.delete(id);
    this.clear();
  }

  /** Must be called before anything else is printed on the terminal. */
  clear(): void {
    if (this.#isShown) this.#write?.("\r\u001b[K");
    this.#isShown = false;
  }
}
