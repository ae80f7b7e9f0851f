/** What budgets are called on the server. */
export class RedisKeys {
  readonly #prefix: string;
  readonly #isCluster: boolean;

  constructor(prefix: string, isCluster: boolean) {
    this.#prefix = prefix;
    this.#isCluster = isCluster;
  }

  get presence(): string {
    return `${this.#prefix}:processes`;
  }

  /**
   * The budgets of one way must lie on one server of a cluster, since one script decides on all of them. The outermost
   * names the slot: `total arxiv` gathers the lanes of its hosts, and a lane alone goes by its host. A single server
   * needs none of that, and there the key does not depend on the way.
   */
  slotOf(budgetKeys: readonly string[]): string {
    if (!this.#isCluster) return "";
    const outermost = budgetKeys.at(-1) ?? "";
    return outermost.split(" ")[1] ?? outermost;
  }

  keyOf(key: string, slot: string): string {
    return this.#isCluster ? `${this.#prefix}{${slot}}:${key}` : `${this.#prefix}:${key}`;
  }
}
