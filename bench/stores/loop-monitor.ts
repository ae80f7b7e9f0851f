/** The longest blocks of the event loop, in elapsed time and in CPU time of this process. */
export interface LoopStalls {
  /** Elapsed time; up to a millisecond too long. */
  readonly stallMs: number;
  /** CPU time of this process, without the time of other processes and waits for the disk. */
  readonly stallCpuMs: number;
}

const SAMPLE_MS = 1;

export class LoopMonitor {
  #stallMs = 0;
  #stallCpuMs = 0;
  #atMs = performance.now();
  #cpuMs = cpuMs();
  readonly #timer = setInterval(() => this.#sample(), SAMPLE_MS);

  stop(): LoopStalls {
    this.#sample();
    clearInterval(this.#timer);
    return { stallMs: this.#stallMs, stallCpuMs: this.#stallCpuMs };
  }

  #sample(): void {
    const atMs = performance.now();
    const usedMs = cpuMs();
    this.#stallMs = Math.max(this.#stallMs, atMs - this.#atMs);
    this.#stallCpuMs = Math.max(this.#stallCpuMs, usedMs - this.#cpuMs);
    this.#atMs = atMs;
    this.#cpuMs = usedMs;
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
