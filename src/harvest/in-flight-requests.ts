/** The requests in flight, by host queue, and the tasks that wait for a download of another work. */
export class InFlightRequests<Task> {
  readonly #byQueue = new Map<string, number>();
  /** Tasks that wait for a URL that is being downloaded. */
  readonly #waitingByUrl = new Map<string, Task[]>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  get byQueue(): ReadonlyMap<string, number> {
    return this.#byQueue;
  }

  /**
   * False if the URL is being downloaded for another work: then `end` of that download returns the task.
   * @param url of a download; undefined for other requests
   */
  start(task: Task, queue: string, url: string | undefined): boolean {
    const waiting = url === undefined ? undefined : this.#waitingByUrl.get(url);
    if (waiting !== undefined) {
      waiting.push(task);
      return false;
    }
    if (url !== undefined) this.#waitingByUrl.set(url, []);
    this.#total += 1;
    this.#byQueue.set(queue, (this.#byQueue.get(queue) ?? 0) + 1);
    return true;
  }

  /** Returns the tasks that waited for this download. */
  end(queue: string, url: string | undefined): readonly Task[] {
    this.#total -= 1;
    const left = (this.#byQueue.get(queue) ?? 1) - 1;
    if (left === 0) this.#byQueue.delete(queue);
    else this.#byQueue.set(queue, left);
    if (url === undefined) return [];
    const waiting = this.#waitingByUrl.get(url) ?? [];
    this.#waitingByUrl.delete(url);
    return waiting;
  }
}
