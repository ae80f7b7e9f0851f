import { ForgetfulMap } from "../core/evicting-map.ts";
import type { AimdPolicy } from "../core/limits/aimd.ts";
import { groupName, isGroupName, type Limits, type Route } from "../policy/limits.ts";
import { notARole, ROLES, type Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { Budget, Lane } from "./budget.ts";
import type { LearnedChange } from "./learned-limits.ts";
import { Pace } from "./pace.ts";

/** The lanes of a process, and the budgets above them. */
export class Lanes implements Iterable<Lane> {
  #limits: Limits;
  readonly #time: Time;
  readonly #byRole: Readonly<Record<Role, ForgetfulMap<Lane>>>;
  /** As many as the policies of this run have named, by their names. */
  readonly #shared = new Map<string, Budget>();
  readonly #kept = new Set<Lane>();
  readonly #isForgettable: (lane: Lane) => boolean;
  readonly #lapsed: (lane: Lane, changes: readonly LearnedChange[]) => void;

  /** `lapsed` hears of lanes that go by their policy again. */
  constructor(
    limits: Limits,
    time: Time,
    isForgettable: (lane: Lane) => boolean,
    lapsed: (lane: Lane, changes: readonly LearnedChange[]) => void,
  ) {
    this.#limits = limits;
    this.#time = time;
    this.#isForgettable = isForgettable;
    this.#lapsed = lapsed;
    const make = () =>
      new ForgetfulMap<Lane>(lane => {
        // Answers to what it sent may still come; they find who took its place.
        lane.isGone = !this.#kept.has(lane) && isForgettable(lane);
        return lane.isGone;
      });
    this.#byRole = { metadata: make(), landing: make(), artifact: make() };
  }

  /** The lane of a request, made on its first use. Throws a RangeError for what is not a host. */
  at(host: string, role: Role, path?: string): Lane {
    const lanes = this.#ofRole(role);
    // Known lanes carry canonical names, so that a host found here needs no more parsing.
    const known = path === undefined || !this.#limits.hasPaths(host) ? lanes.get(host) : undefined;
    if (known !== undefined && !isGroupName(host)) return known.learned === undefined ? known : this.#refreshed(known);
    return this.#along(this.#limits.route(host, role, path), role);
  }

  /**
   * The lane of a group of the policy: one whatever the host, or one for each where the group says so. Throws a
   * RangeError when there is no such group.
   */
  of(service: string, role: Role, host: string): Lane {
    const name = groupName(service);
    const lane = this.#named(name, role) ?? this.#named(`${name}:${host}`, role);
    if (lane === undefined) throw new RangeError(`${JSON.stringify(service)} is no group of the policy`);
    return lane;
  }

  #named(name: string, role: Role): Lane | undefined {
    const known = this.#ofRole(role).get(name);
    if (known !== undefined) return this.#refreshed(known);
    const route = this.#limits.named(name, role);
    return route && this.#along(route, role);
  }

  /** The lane itself; or which one serves its name by now, if it is gone. */
  current(lane: Lane): Lane | undefined {
    if (!lane.isGone) return lane;
    const route = this.#limits.named(lane.name, lane.role);
    return route && this.#along(route, lane.role);
  }

  get aimd(): AimdPolicy {
    return this.#limits.aimd;
  }

  #ofRole(role: Role): ForgetfulMap<Lane> {
    const lanes = this.#byRole[role];
    if (lanes === undefined) throw new RangeError(notARole(role));
    return lanes;
  }

  #along(route: Route, role: Role): Lane {
    const lanes = this.#byRole[role];
    const existing = lanes.get(route.name);
    if (existing !== undefined) return this.#refreshed(existing);
    const lane = new Lane(route.name, role, route.lane, this.#chain(route));
    const { aimd } = this.#limits;
    // A pace that is slower from the start must be there from the start.
    if (aimd.enabled && aimd.maxMultiplier !== 1) lane.pace = new Pace(lane.policy, aimd, this.#time.monotonicUs());
    lanes.add(route.name, lane);
    return lane;
  }

  /** One that might have been forgotten is as one that was: what its server said has lapsed. */
  #refreshed(lane: Lane): Lane {
    const { learned } = lane;
    if (learned === undefined || !this.#isForgettable(lane)) return lane;
    lane.unlearn(this.aimd);
    this.#lapsed(lane, learned.lapse());
    // Whoever was told may have come in here, and made it forgotten.
    return this.current(lane) ?? lane;
  }

  /**
   * Goes on under other limits: budgets keep what they counted. A lane whose requests now belong elsewhere is no longer
   * found, and lives on only for what is still in flight.
   */
  follow(limits: Limits): void {
    this.#limits = limits;
    const chains = new Map([...this].map(lane => [lane, chainOf(lane)]));
    for (const [lane, old] of chains) {
      const route = limits.named(lane.name, lane.role);
      if (route?.name !== lane.name) {
        this.#byRole[lane.role].delete(lane.name);
        lane.isGone = true;
        continue;
      }
      lane.follow(route.lane, limits.aimd);
      lane.above = this.#chain(route);
      transfer(lane, old, chainOf(lane));
    }
  }

  /** A lane that is there before its first request, and is never forgotten. */
  keep(host: string, role: Role): void {
    this.#kept.add(this.at(host, role));
  }

  *[Symbol.iterator](): IterableIterator<Lane> {
    for (const role of ROLES) yield* this.#byRole[role].values();
  }

  #chain(route: Route): Budget | undefined {
    return route.above.reduceRight<Budget | undefined>((outer, { name, policy }) => {
      const budget = this.#shared.get(name) ?? new Budget(name, policy, outer);
      // One that nobody used when the limits changed still has its old numbers.
      if (budget.policy !== policy) budget.follow(policy, this.#limits.aimd);
      budget.above = outer;
      this.#shared.set(name, budget);
      return budget;
    }, undefined);
  }
}

function chainOf(lane: Lane): readonly Budget[] {
  const chain: Budget[] = [];
  for (let at = lane.above; at; at = at.above) chain.push(at);
  return chain;
}

/** What a lane has out is counted in every budget above it, and only there. */
function transfer(lane: Lane, from: readonly Budget[], to: readonly Budget[]): void {
  for (const [budgets, others, sign] of [
    [from, to, -1],
    [to, from, 1],
  ] as const) {
    for (const budget of budgets) {
      if (others.includes(budget)) continue;
      budget.inFlight += sign * lane.inFlight;
      budget.log.reserve(sign * lane.log.pending);
    }
  }
}
