import type { Answer } from "../store.ts";

type Refusal = Extract<Answer, { kind: "wait" }>;

/** Refusals are few and short-lived; more of them than this are not worth the memory. */
const MOST_REFUSALS = 10_000;

/**
 * Remembers who was told to wait, and answers the same question from memory. Until the time it was told, only somebody
 * who returns units, dies or leaves can change that in its favour: one more round trip now and then finds that out.
 */
export class RedisMirror {
  readonly #trustedUs: number;
  readonly #refusals = new Map<string, { readonly refusal: Refusal; readonly toldUs: number }>();

  /** A refusal that is so old is asked for again. */
  constructor(trustedUs: number) {
    this.#trustedUs = trustedUs;
  }

  note(question: string, answer: Answer, nowUs: number): void {
    if (answer.kind === "given") {
      this.#refusals.delete(question);
      return;
    }
    if (this.#refusals.size >= MOST_REFUSALS) this.#refusals.clear();
    this.#refusals.set(question, { refusal: answer, toldUs: nowUs });
  }

  /** What the server would say; undefined when it has to be asked. */
  answer(question: string, nowUs: number): Refusal | undefined {
    const known = this.#refusals.get(question);
    if (known === undefined) return undefined;
    const { refusal, toldUs } = known;
    const sinceUs = nowUs - toldUs;
    const leftMs = refusal.waitMs - sinceUs / 1000;
    if (sinceUs < this.#trustedUs && leftMs > 0) return { ...refusal, waitMs: leftMs };
    this.#refusals.delete(question);
    return undefined;
  }

  /** This process gave something back, or the server is not the one that was asked. */
  clear(): void {
    this.#refusals.clear();
  }
}
