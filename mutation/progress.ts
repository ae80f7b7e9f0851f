/** How far a run is, and how long the rest will take at the present rate. */
export class Progress {
  readonly #files: number;
  readonly #mutants: number;
  readonly #now: () => number;
  readonly #startMs: number;
  #filesDone = 0;
  #mutantsDone = 0;

  /** `sizes` are the numbers of mutants of the files. */
  constructor(sizes: readonly number[], now: () => number = () => performance.now()) {
    this.#files = sizes.length;
    this.#mutants = sizes.reduce((sum, size) => sum + size, 0);
    this.#now = now;
    this.#startMs = now();
  }

  /** The text after a file with so many mutants. */
  after(mutants: number): string {
    this.#filesDone += 1;
    this.#mutantsDone += mutants;
    const perSecond = (1000 * this.#mutantsDone) / Math.max(1, this.#now() - this.#startMs);
    const leftMinutes = (this.#mutants - this.#mutantsDone) / Math.max(perSecond, 0.001) / 60;
    return `[${this.#filesDone}/${this.#files} files, ${this.#mutantsDone}/${this.#mutants} mutants, ${perSecond.toFixed(1)}/s, ${leftMinutes.toFixed(1)} min left]`;
  }
}
