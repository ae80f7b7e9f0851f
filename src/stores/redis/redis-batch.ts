import type { Answer, Ask, Settlement, StoreClaim } from "../store.ts";

/** Nobody else is served while the script runs; so many take a third of a millisecond, and the next can be on its way. */
const MOST_AT_ONCE = 16;

/** A question, and everybody who asks it. */
interface Question {
  readonly ask: Ask;
  readonly hear: ((answer: Answer) => void)[];
}

/**
 * What goes to the server in one call of the script. Settlements of one budget are added up, and the same question of
 * several callers is one question, asked so many times.
 */
export class RedisBatch {
  readonly settlements = new Map<string, { written: number; returned: number }>();
  readonly questions = new Map<string, Question>();
  readonly #outcome = Promise.withResolvers<void>();
  #size = 0;

  /** Resolves when everybody has heard his answer. */
  get done(): Promise<void> {
    return this.#outcome.promise;
  }

  get isFull(): boolean {
    return this.#size >= MOST_AT_ONCE;
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

  ask(question: string, ask: Ask, hear: (answer: Answer) => void): void {
    const known = this.questions.get(question);
    if (known !== undefined) {
      known.hear.push(hear);
      return;
    }
    this.#size += 1;
    this.questions.set(question, { ask, hear: [hear] });
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
    for (const { ask } of this.questions.values()) for (const { key } of ask.claims) keys.add(key);
    return keys;
  }
}

/** Two asks with the same question have the same answer at the same instant. */
export function questionOf({ claims, least, most }: Ask): string {
  let question = `${least} ${most}`;
  for (const claim of claims) question += `\n${claim.key}\t${claimText(claim)}`;
  return question;
}

/** A claim as the script reads it. */
export function claimText({ spacingUs, windows }: StoreClaim): string {
  let text = String(spacingUs);
  for (const { limit, windowUs, spanUs } of windows) text += `;${limit},${windowUs},${spanUs}`;
  return text;
}
