import type { Constraint, DecidedBy, LimitChanges } from "../errors.ts";
import type { LoadedPolicy } from "./load.ts";
import { decidedByOf, type ExplainedRequest } from "./provenance.ts";

/** Bounds the memory. When it is full, all settings are dropped and searched for again. */
const KNOWN_MAX = 1000;

/** The settings behind the waits and refusals of one policy. Each is found once, because the search takes some 60 µs. */
export class DecidedBySettings {
  readonly #policy: LoadedPolicy;
  readonly #known = new Map<string, DecidedBy>();
  readonly #knownMax: number;

  constructor(policy: LoadedPolicy, knownMax = KNOWN_MAX) {
    this.#policy = policy;
    this.#knownMax = knownMax;
  }

  of(constraint: Constraint, request: ExplainedRequest, limitChanges: LimitChanges = {}): DecidedBy {
    const { kind, owner, limit } = constraint;
    const { host, role, path, sentKeys = [] } = request;
    const { ratelimits } = this.#policy;
    // Without a path, the host may be the name of a service, which has no paths.
    const ownPath = path !== undefined && ratelimits.resolved.hasPaths(host) ? path : undefined;
    const { learnedFrom, order, totalOrder } = limitChanges;
    const orders = [order, totalOrder].flatMap(each => [each?.rates, each?.maxConcurrent, each?.reason, each?.by]);
    const changes = [learnedFrom?.source, learnedFrom?.wallMs, ...orders];
    const key = JSON.stringify([kind, owner, limit, host, role, ownPath, [...sentKeys], ...changes]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const found = decidedByOf(this.#policy, constraint, request, limitChanges);
    if (this.#known.size >= this.#knownMax) this.#known.clear();
    this.#known.set(key, found);
    return found;
  }
}
