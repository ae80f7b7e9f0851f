/** Refusals in a row after which a service that has answered before counts as refusing this program. */
const IN_A_ROW_MAX = 3;

/**
 * Whether a service that has refused a query refuses this program. A firewall may refuse a single query for a character
 * in it, with the same status as a wrong key. So a 403 of a service that has answered before concerns one work, until
 * several queries in a row were refused.
 */
export class ResolverRefusals {
  /** Refused queries since the last answer, of resolvers that have answered. */
  readonly #inARow = new Map<string, number>();

  answered(resolver: string): void {
    this.#inARow.set(resolver, 0);
  }

  mayConcernOneWork(resolver: string, status: number | undefined): boolean {
    return status === 403 && (this.#inARow.get(resolver) ?? IN_A_ROW_MAX) < IN_A_ROW_MAX - 1;
  }

  /** Counts a query about one work. Returns true if the service refuses this program. */
  refused(resolver: string, status: number | undefined): boolean {
    if (!this.mayConcernOneWork(resolver, status)) return true;
    this.#inARow.set(resolver, (this.#inARow.get(resolver) ?? 0) + 1);
    return false;
  }
}
