/** The mean of numbers. */
export class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count += 1;
  }

  /** Undefined without numbers. */
  get value(): number | undefined {
    return this.#count === 0 ? undefined : this.#sum / this.#count;
  }
}
