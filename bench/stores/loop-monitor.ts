/** The event loop's longest silences, by the clock and by what this process itself did meanwhile. */
export interface LoopStalls {
  /** Up to a millisecond more than it was. */
  readonly stallMs: number;
  /** Of this process's processor time: without what others did to it on a busy machine, nor waits for the disk. */
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
