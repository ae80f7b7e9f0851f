import { urlHost } from "../core/text/host.ts";
import { type LoadedPolicy, namesHost } from "../policy/load.ts";

/** Bounds the memory for a crawler that calls very many origins. */
const REMEMBERED_MAX = 4096;

/** The name of an origin in policies, windows and circuits: without the port, unless the policy lists that port. */
export class HostNames {
  readonly #policy: LoadedPolicy;
  readonly #nameByOrigin = new Map<string, string>();
  /** Most requests go to the same origin as the one before, and comparing is cheaper than a lookup. */
  #lastOrigin = "";
  #lastName = "";

  constructor(policy: LoadedPolicy) {
    this.#policy = policy;
  }

  /**
   * The string object of the last request if it has the same text, otherwise `origin`. A client builds a new string for
   * each request, and a Map must hash a new string before it can look it up; the old one has its hash already.
   */
  lastOriginIfEqual(origin: string): string {
    return origin === this.#lastOrigin ? this.#lastOrigin : origin;
  }

  /** Throws a RangeError when the origin is not http or https. */
  of(origin: string): string {
    if (origin === this.#lastOrigin) return this.#lastName;
    this.#lastName = this.#nameByOrigin.get(origin) ?? this.#name(origin);
    this.#lastOrigin = origin;
    return this.#lastName;
  }

  #name(origin: string): string {
    const { host, port } = urlHost(origin);
    const name = namesHost(this.#policy, `${host}:${port}`) ? `${host}:${port}` : host;
    if (this.#nameByOrigin.size >= REMEMBERED_MAX) this.#nameByOrigin.clear();
    this.#nameByOrigin.set(origin, name);
    return name;
  }
}
