import type { LeaseReply } from "../store.ts";

type WaitReply = Extract<LeaseReply, { kind: "wait" }>;

/** More refusals than this are dropped: they are short-lived, and a dropped one costs a round trip. */
const MAX_REFUSALS = 10_000;

/**
 * Repeats "wait" replies from memory for equal requests. Before the announced time, units become available only if
 * another process returns units, or its lease or turn ends. So a round trip now and then is enough.
 */
export class RedisRefusalCache {
  readonly #trustedUs: number;
  readonly #refusals = new Map<string, { readonly refusal: WaitReply; readonly repliedUs: number }>();

  /** `trustedUs`: how long a refusal is repeated before the server is asked again. */
  constructor(trustedUs: number) {
    this.#trustedUs = trustedUs;
  }

  record(requestKey: string, reply: LeaseReply, nowUs: number): void {
    if (reply.kind === "granted" || reply.isLost) {
      this.#refusals.delete(requestKey);
      return;
    }
    if (this.#refusals.size >= MAX_REFUSALS) this.#refusals.clear();
    this.#refusals.set(requestKey, { refusal: reply, repliedUs: nowUs });
  }

  /** The reply that the server would give; undefined if it must be asked. */
  reply(requestKey: string, nowUs: number): WaitReply | undefined {
    const entry = this.#refusals.get(requestKey);
    if (entry === undefined) return undefined;
    const { refusal, repliedUs } = entry;
    const sinceUs = nowUs - repliedUs;
    const leftMs = refusal.waitMs - sinceUs / 1000;
    if (sinceUs < this.#trustedUs && leftMs > 0)
      return { kind: "wait", waitMs: leftMs, key: refusal.key, isStricter: refusal.isStricter };
    this.#refusals.delete(requestKey);
    return undefined;
  }

  /** To be called when this process has returned units, or the connection was lost. */
  clear(): void {
    this.#refusals.clear();
  }
}
