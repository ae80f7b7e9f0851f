/** The format of budgets. Each format has its own keys, so that no process reads a format that it does not know. */
const FORMAT = "v3";

/**
 * The beginning of the keys, unless the URL has the parameter `prefix`. Only `breaker:cooldown:<host>`, which other tools
 * may read, does not have this default.
 */
export const DEFAULT_PREFIX = "docstokg";

/** The host or the service in the key of a budget: `lane api.example.org metadata`, `total service arxiv`. */
const NAME = /^\S+ ((?:service )?\S+)/;

/** The Redis keys of budgets. */
export class RedisKeys {
  readonly #prefix: string;
  readonly isCluster: boolean;

  constructor(prefix: string, isCluster: boolean) {
    this.#prefix = prefix;
    this.isCluster = isCluster;
  }

  get presence(): string {
    return `${this.#prefix}:processes`;
  }

  /**
   * The hash tag of a request's budgets. They must be on one server of a cluster, because one script decides on all of
   * them. The outermost budget names the slot: `total service arxiv` is shared by the budgets of its hosts, and a
   * budget without a total uses its host. The role is left out, and so is the unit that the key of a cost ends with: the
   * slot stays the same when a policy adds a total. A single server needs no hash tag.
   */
  slotOf(budgetKeys: readonly string[]): string {
    if (!this.isCluster) return "";
    const outermost = budgetKeys.at(-1) ?? "";
    return NAME.exec(outermost)?.[1] ?? outermost;
  }

  keyOf(key: string, slot: string): string {
    const prefix = this.isCluster ? `${this.#prefix}{${slot}}` : this.#prefix;
    return `${prefix}:${FORMAT}:${key}`;
  }
}
