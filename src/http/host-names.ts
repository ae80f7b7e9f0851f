import { canonicalHost, urlHost } from "../core/text/host.ts";
import type { LoadedPolicy } from "../policy/load.ts";

/** Origins are few beside requests, and a crawler's many are not worth more memory than this. */
const REMEMBERED_MAX = 4096;

/** By which name a host is charged: without its port, unless the policy names it with that port. */
export class HostNames {
  readonly #withPort: ReadonlySet<string>;
  readonly #known = new Map<string, string>();
  /** Most requests go where the last one went, and to compare is cheaper than to look up. */
  #lastOrigin = "";
  #lastName = "";

  constructor({ ratelimits, breakers }: LoadedPolicy) {
    const members = Object.values(ratelimits.options.groups ?? {}).flatMap(group => group.members ?? []);
    const named = [
      ...Object.keys(ratelimits.options.hosts ?? {}),
      ...Object.keys(breakers.options.hosts ?? {}),
      ...members.map(member => member.split("/")[0] ?? ""),
    ];
    this.#withPort = new Set(named.filter(name => /:\d+$/.test(name)).map(canonicalHost));
  }

  /**
   * The same text as an earlier one, if there was one: clients make a new string for each request, and a map has to read
   * through a string that it has not seen before.
   */
  known(origin: string): string {
    return origin === this.#lastOrigin ? this.#lastOrigin : origin;
  }

  /** Throws a RangeError for what is no http or https origin. */
  of(origin: string): string {
    if (origin === this.#lastOrigin) return this.#lastName;
    this.#lastName = this.#known.get(origin) ?? this.#name(origin);
    this.#lastOrigin = origin;
    return this.#lastName;
  }

  #name(origin: string): string {
    const { host, port } = urlHost(origin);
    const name = this.#withPort.has(`${host}:${port}`) ? `${host}:${port}` : host;
    if (this.#known.size >= REMEMBERED_MAX) this.#known.clear();
    this.#known.set(origin, name);
    return name;
  }
}
