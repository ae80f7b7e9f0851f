import type { CacheWrite } from "./cache-write.ts";

export interface WriteQueueLimits {
  readonly maxWrites: number;
  readonly maxBytes: number;
}

/**
 * Writes that wait for their turn at a file, first come first served, and what they are about.
 * Bounded: beyond that the oldest response is dropped. A removal goes last, as it is small, and losing one would let
 * a response be served that the server has made void.
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

  /** How many were given up so far. */
  get dropped(): number {
    return this.#dropped;
  }

  push(write: CacheWrite): void {
    // What waits for this URL is void with it.
    if (write.kind === "remove") for (const former of this.of(write.url)) this.#delete(former);
    this.#writes.add(write);
    this.#bytes += write.bytes;
    const ofUrl = this.#byUrl.get(write.url);
    if (ofUrl === undefined) this.#byUrl.set(write.url, new Set([write]));
    else ofUrl.add(write);
    while (this.#writes.size > this.#limits.maxWrites || this.#bytes > this.#limits.maxBytes) this.#dropOldest();
  }

  /** Those that wait for a URL, in their order. */
  of(url: string): Iterable<CacheWrite> {
    return this.#byUrl.get(url) ?? NONE;
  }

  /** The next ones: as many as fit into both bounds, and one at least. */
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

  /** They are written. */
  done(batch: readonly CacheWrite[]): void {
    for (const write of batch) this.#delete(write);
  }

  /** Gives up what cannot be stored, and keeps what must not be served any more. */
  dropResponses(): void {
    for (const write of this.#writes) if (write.kind !== "remove") this.#drop(write);
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
