import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import type { Io } from "../program.ts";
import { formatSize } from "./settings-flags.ts";

/** Ten times a second is as often as anybody reads. */
const REPAINT_US = 100_000;
const WIDTH = 100;

/** What is under way, in one line that is painted over, on a terminal; nothing elsewhere: results have lines of their own. */
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
        ? formatSize(bytes)
        : `${Math.floor((100 * bytes) / Math.max(1, totalBytes))} % of ${formatSize(totalBytes)}`;
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

  /** Before anything else is printed. */
  clear(): void {
    if (this.#isShown) this.#write?.("\r\u001b[K");
    this.#isShown = false;
  }
}
