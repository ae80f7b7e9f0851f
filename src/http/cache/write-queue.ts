import type { CacheWrite } from "./cache-write.ts";

export interface WriteQueueLimits {
  readonly maxWrites: number;
  readonly maxBytes: number;
}

/**
 * Changes that wait to be written to a cache file, in order, with an index by URL. Beyond the limits the oldest response
 * is dropped. Removals are dropped last: they are small, and without one an invalid response would be served.
 */
export class WriteQueue {
  readonly #limits: WriteQueueLimits;
  readonly #writes = new Set<CacheWrite>();
  readonly #byUrl = new Map<string, Set<CacheWrite>>();
  #bytes = 0;
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
    const ofUrl = this.#byUrl.get(write.url);
    if (ofUrl === undefined) this.#byUrl.set(write.url, new Set([write]));
    else ofUrl.add(write);
    while (this.#writes.size > this.#limits.maxWrites || this.#bytes > this.#limits.maxBytes) this.#dropOldest();
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

  /**
   * Drops the queued responses and keeps the removals. Each URL of a dropped response is removed too, because the file may
   * hold an older response of it.
   */
  dropResponses(): void {
    const responses = [...this.#writes].filter(({ kind }) => kind !== "remove");
    for (const write of responses) this.#drop(write);
    for (const { kind, url } of responses) if (kind === "put") this.push({ kind: "remove", url, bytes: 0 });
  }

  /** Drops all changes. */
  dropAll(): void {
    for (const write of this.#writes) this.#drop(write);
  }

  #dropOldest(): void {
    let oldest: CacheWrite | undefined;
    for (const write of this.#writes) {
      oldest ??= write;
      if (write.kind === "remove") continue;
      oldest = write;
      break;
    }
    if (oldest !== undefined) this.#drop(oldest);
  }

  #drop(write: CacheWrite): void {
    this.#delete(write);
    this.#dropped += 1;
  }

  #delete(write: CacheWrite): void {
    if (!this.#writes.delete(write)) return;
    this.#bytes -= write.bytes;
    const ofUrl = this.#byUrl.get(write.url);
    ofUrl?.delete(write);
    if (ofUrl?.size === 0) this.#byUrl.delete(write.url);
  }
}

const NONE: readonly CacheWrite[] = Object.freeze([]);
