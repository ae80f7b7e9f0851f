import type { LeaseReply, LeaseRequest, Settlement, StoreClaim } from "../store.ts";

/** Nobody else is served while the script runs; so many take a third of a millisecond, and the next can be on its way. */
const MAX_BATCH = 16;

/** A question, and everybody who asks it. */
interface PendingRequest {
  readonly request: LeaseRequest;
  readonly onReply: ((reply: LeaseReply) => void)[];
}

/**
 * What goes to the server in one call of the script. Settlements of one budget are added up, and the same question of
 * several callers is one question, asked so many times.
 */
export class RedisBatch {
  readonly settlements = new Map<string, { written: number; returned: number }>();
  readonly pending = new Map<string, PendingRequest>();
  readonly #outcome = Promise.withResolvers<void>();
  #size = 0;

  /** Resolves when everybody has heard his answer. */
  get done(): Promise<void> {
    return this.#outcome.promise;
  }

  get isFull(): boolean {
    return this.#size >= MAX_BATCH;
  }

  settle({ keys, written, returned }: Settlement): void {
    for (const key of keys) {
      const sum = this.settlements.get(key);
      if (sum === undefined) {
        this.settlements.set(key, { written, returned });
        this.#size += 1;
      } else {
        sum.written += written;
        sum.returned += returned;
      }
    }
  }

  request(requestKey: string, request: LeaseRequest, onReply: (reply: LeaseReply) => void): void {
    const known = this.pending.get(requestKey);
    if (known !== undefined) {
      known.onReply.push(onReply);
      return;
    }
    this.#size += 1;
    this.pending.set(requestKey, { request, onReply: [onReply] });
  }

  finish(): void {
    this.#outcome.resolve();
  }

  fail(error: unknown): void {
    this.#outcome.reject(error);
  }

  /** Every budget that it touches. */
  keys(): ReadonlySet<string> {
    const keys = new Set(this.settlements.keys());
    for (const { request } of this.pending.values()) for (const { key } of request.claims) keys.add(key);
    return keys;
  }
}

/** Two asks with the same question have the same answer at the same instant. */
export function requestKeyOf({ claims, least, most }: LeaseRequest): string {
  let requestKey = `${least} ${most}`;
  for (const claim of claims) requestKey += `\n${claim.key}\t${claimText(claim)}`;
  return requestKey;
}

/** A claim as the script reads it. */
export function claimText({ spacingUs, windows }: StoreClaim): string {
  let text = String(spacingUs);
  for (const { limit, windowUs, spanUs } of windows) text += `;${limit},${windowUs},${spanUs}`;
  return text;
}
