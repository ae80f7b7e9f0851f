import type { CacheWrite } from "./cache-write.ts";

export interface WriteQueueLimits {
  /** Of responses, and of removals. */
  readonly maxWrites: number;
  readonly maxBytes: number;
}

/**
 * Changes that wait to be written to a cache file, in order, with an index by URL. Beyond the limits the responses of a URL
 * are dropped, the oldest first. Removals have a limit of their own, because they are small, and without one an invalid
 * response would be served.
 */
export class WriteQueue {
  readonly #limits: WriteQueueLimits;
  readonly #writes = new Set<CacheWrite>();
  readonly #byUrl = new Map<string, Set<CacheWrite>>();
  #bytes = 0;
  #removals = 0;
  #dropped = 0;

  constructor(limits: WriteQueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#writes.size;
  }

  /** Number of changes dropped so far. */
  get dropped(): number {
    return this.#dropped;
  }

  push(write: CacheWrite): void {
    // Earlier changes for this URL have no effect after its removal.
    if (write.kind === "remove") for (const former of this.of(write.url)) this.#delete(former);
    this.#writes.add(write);
    this.#bytes += write.bytes;
    if (write.kind === "remove") this.#removals += 1;
    const ofUrl = this.#byUrl.get(write.url);
    if (ofUrl === undefined) this.#byUrl.set(write.url, new Set([write]));
    else ofUrl.add(write);
    const { maxWrites, maxBytes } = this.#limits;
    while (this.#writes.size - this.#removals > maxWrites || this.#bytes > maxBytes) this.#dropOldest("response");
    while (this.#removals > maxWrites) this.#dropOldest("removal");
  }

  /** The queued changes of a URL, in order. */
  of(url: string): Iterable<CacheWrite> {
    return this.#byUrl.get(url) ?? NONE;
  }

  /** The next batch: as many as fit into both limits, at least one. */
  next(maxWrites: number, maxBytes: number): readonly CacheWrite[] {
    const batch: CacheWrite[] = [];
    let bytes = 0;
    for (const write of this.#writes) {
      bytes += write.bytes;
      if (batch.length > 0 && (bytes > maxBytes || batch.length >= maxWrites)) break;
      batch.push(write);
    }
    return batch;
  }

  /** Removes a batch that was written. */
  done(batch: readonly CacheWrite[]): void {
    for (const write of batch) this.#delete(write);
  }

  /** Drops the queued responses and keeps the removals. */
  dropResponses(): void {
    for (const { kind, url } of [...this.#writes]) if (kind !== "remove") this.#dropResponsesOf(url);
  }

  /** Drops all changes. */
  dropAll(): void {
    for (const write of this.#writes) this.#drop(write);
  }

  #dropOldest(what: "response" | "removal"): void {
    for (const write of this.#writes) {
      if ((write.kind === "remove") !== (what === "removal")) continue;
      if (what === "removal") this.#drop(write);
      else this.#dropResponsesOf(write.url);
      return;
    }
  }

  /** A URL of which a response is dropped is removed too, because the file may hold an older response of it. */
  #dropResponsesOf(url: string): void {
    const responses = [...this.of(url)].filter(({ kind }) => kind !== "remove");
    for (const write of responses) this.#drop(write);
    if (responses.some(({ kind }) => kind === "put")) this.push({ kind: "remove", url, bytes: 0 });
  }

  #drop(write: CacheWrite): void {
    this.#delete(write);
    this.#dropped += 1;
  }

  #delete(write: CacheWrite): void {
    if (!this.#writes.delete(write)) return;
    this.#bytes -= write.bytes;
    if (write.kind === "remove") this.#removals -= 1;
    const ofUrl = this.#byUrl.get(write.url);
    ofUrl?.delete(write);
    if (ofUrl?.size === 0) this.#byUrl.delete(write.url);
  }
}

const NONE: readonly CacheWrite[] = Object.freeze([]);
