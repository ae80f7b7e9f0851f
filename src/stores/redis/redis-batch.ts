import { claimText } from "../../core/limits/budget-claim.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../store.ts";

/** The server does nothing else while the script runs. This many entries take a third of a millisecond. */
const MAX_BATCH = 16;

/** A request, and a callback for each caller that has made it. */
interface PendingRequest {
  readonly request: LeaseRequest;
  readonly onReply: ((reply: LeaseReply) => void)[];
}

/**
 * The settlements and requests of one call of the script. Settlements of a budget are summed up. Equal requests of
 * several callers are sent once, with the number of callers.
 */
export class RedisBatch {
  readonly settlements = new Map<string, { written: number; returned: number }>();
  readonly pending = new Map<string, PendingRequest>();
  readonly reports: UseReport[] = [];
  readonly #outcome = Promise.withResolvers<void>();
  #size = 0;

  /** Resolves when every caller has its reply; rejects if the call fails. */
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

  report(report: UseReport): void {
    this.reports.push(report);
    this.#size += 1;
  }

  request(requestKey: string, request: LeaseRequest, onReply: (reply: LeaseReply) => void): void {
    const existing = this.pending.get(requestKey);
    if (existing !== undefined) {
      existing.onReply.push(onReply);
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

  /** The key of any budget in the batch: all of them are on the same server. */
  get anyKey(): string {
    for (const key of this.settlements.keys()) return key;
    for (const { claim } of this.reports) return claim.key;
    for (const { request } of this.pending.values()) for (const { key } of request.claims) return key;
    return "";
  }

  /** The keys of all budgets in the batch. */
  keys(): ReadonlySet<string> {
    const keys = new Set(this.settlements.keys());
    for (const { claim } of this.reports) keys.add(claim.key);
    for (const { request } of this.pending.values()) for (const { key } of request.claims) keys.add(key);
    return keys;
  }
}

/** Equal for requests that get the same reply at the same instant. */
export function requestKeyOf({ claims, least, most, aheadMs = 0, wantsUse = false }: LeaseRequest): string {
  let requestKey = `${least} ${most} ${aheadMs}${wantsUse ? " use" : ""}`;
  for (const claim of claims) requestKey += `\n${claim.key}\t${claimText(claim)}`;
  return requestKey;
}
