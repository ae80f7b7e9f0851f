/** The event loop's longest silences, by the clock and by what this process itself did meanwhile. */
export interface Silence {
  /** Up to a millisecond more than it was. */
  readonly stallMs: number;
  /** Of this process's processor time: without what others did to it on a busy machine, nor waits for the disk. */
  readonly stallCpuMs: number;
}

const BEAT_MS = 1;

export class Pulse {
  #stallMs = 0;
  #stallCpuMs = 0;
  #atMs = performance.now();
  #cpuMs = cpuMs();
  readonly #timer = setInterval(() => this.#beat(), BEAT_MS);

  stop(): Silence {
    this.#beat();
    clearInterval(this.#timer);
    return { stallMs: this.#stallMs, stallCpuMs: this.#stallCpuMs };
  }

  #beat(): void {
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
