import type { LeaseReply } from "../store.ts";

type WaitReply = Extract<LeaseReply, { kind: "wait" }>;

/** Refusals are few and short-lived; more of them than this are not worth the memory. */
const MAX_REFUSALS = 10_000;

/**
 * Remembers who was told to wait, and answers the same question from memory. Until the time it was told, only somebody
 * who returns units, dies or leaves can change that in its favour: one more round trip now and then finds that out.
 */
export class RedisRefusalCache {
  readonly #trustedUs: number;
  readonly #refusals = new Map<string, { readonly refusal: WaitReply; readonly repliedUs: number }>();

  /** A refusal that is so old is asked for again. */
  constructor(trustedUs: number) {
    this.#trustedUs = trustedUs;
  }

  record(requestKey: string, reply: LeaseReply, nowUs: number): void {
    if (reply.kind === "granted") {
      this.#refusals.delete(requestKey);
      return;
    }
    if (this.#refusals.size >= MAX_REFUSALS) this.#refusals.clear();
    this.#refusals.set(requestKey, { refusal: reply, repliedUs: nowUs });
  }

  /** What the server would say; undefined when it has to be asked. */
  reply(requestKey: string, nowUs: number): WaitReply | undefined {
    const known = this.#refusals.get(requestKey);
    if (known === undefined) return undefined;
    const { refusal, repliedUs } = known;
    const sinceUs = nowUs - repliedUs;
    const leftMs = refusal.waitMs - sinceUs / 1000;
    if (sinceUs < this.#trustedUs && leftMs > 0) return { ...refusal, waitMs: leftMs };
    this.#refusals.delete(requestKey);
    return undefined;
  }

  /** This process gave something back, or the server is not the one that was asked. */
  clear(): void {
    this.#refusals.clear();
  }
}
