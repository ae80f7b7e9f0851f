import type { SimFact, WireRequest } from "../facts.ts";
import type { Plan } from "../plan.ts";
import { scaled } from "../policy.ts";
import type { Law, LawMaker } from "./law.ts";
import { PoliciesInForce } from "./policies-in-force.ts";
import { creditScopesOf, hostOf, JITTER_US, logOf, type RateScope, scopesOf } from "./scopes.ts";
import type { StampLog } from "./stamp-log.ts";

/** Units that a process had leased when its store lost its data may be sent for this long. */
const LEASE_US = 1_000_000;

/** Processes that reload within this time make one reload. */
const SAME_RELOAD_US = 300_000;

/**
 * L1 for the requests that arrive at a server from all processes, by the server's clock, and for the credits that they
 * use out of those they were granted. Holds while the network jitter is below the guard and the store keeps its data.
 * Requests sent while a process has no store are checked by `share`. After a loss of data the count starts again, and
 * requests that were already leased are not checked.
 */
export const anyWindowAtServer: LawMaker = {
  title: "any window, at the server",
  make: (plan, occasion) => new AnyWindowAtServer(plan, occasion),
};

/** The policies of all processes at one instant. */
interface PoliciesOfAll {
  /** How many of them have the totals of the hosts. */
  readonly totals: "none" | "some" | "all";
  /** The largest factor of their rates. */
  readonly factor: number;
}

class AnyWindowAtServer implements Law {
  readonly #occasion: () => void;
  readonly #plan: Plan;
  readonly #policies: PoliciesInForce;
  readonly #logs = new Map<string, StampLog>();
  readonly #storeChangedUs = new Map<number, number>();
  readonly #away = new Set<number>();
  readonly #exempt = new WeakSet<WireRequest>();
  /** Whether each request was sent under totals, and the largest factor of the rates of any process then. */
  readonly #sentUnder = new WeakMap<
    WireRequest,
    { readonly totals: "none" | "some" | "all"; readonly factor: number }
  >();
  #epoch = 0;
  #totalsEpoch = 0;
  /** How many processes have joined their partitions. */
  #joined = 0;
  /** Since when some processes have totals and some have not. */
  #someTotalsUs: number | undefined;
  #dataLostUs = Number.NEGATIVE_INFINITY;

  constructor(plan: Plan, occasion: () => void) {
    this.#occasion = occasion;
    this.#plan = plan;
    this.#policies = new PoliciesInForce(plan);
  }

  check(fact: SimFact): string | undefined {
    this.#policies.record(fact);
    if (fact.kind === "reloaded") this.#reloaded(fact.atUs);
    if (fact.kind === "fault") this.#checkFault(fact.atUs, fact.fault);
    else if (fact.kind === "event" && fact.event.event_type === "store_away")
      this.#setAway(fact.process, fact.atUs, true);
    else if (fact.kind === "event" && fact.event.event_type === "store_back")
      this.#setAway(fact.process, fact.atUs, false);
    else if (fact.kind === "dispatched") this.#dispatched(fact.request, fact.atUs);
    else if (fact.kind === "arrived") return this.#arrived(fact.request, fact.atUs);
    return undefined;
  }

  #checkFault(atUs: number, fault: Extract<SimFact, { kind: "fault" }>["fault"]): void {
    if (fault.kind !== "store-restart" && fault.kind !== "store-loss") return;
    this.#epoch += 1;
    this.#dataLostUs = atUs;
  }

  /**
   * What was sent before counts in a total that is added, if all processes add it at about the same time. What a process
   * has sent to a partition counts in the joined budget once the process has reported it to the store.
   */
  #reloaded(atUs: number): void {
    this.#joined = this.#plan.processes.filter((_, process) => !this.#policies.of(process).isPartitioned).length;
    const { totals } = this.#inForce();
    if (totals === "some") this.#someTotalsUs ??= atUs;
    else {
      if (atUs - (this.#someTotalsUs ?? atUs) > SAME_RELOAD_US) this.#totalsEpoch += 1;
      this.#someTotalsUs = undefined;
    }
  }

  #setAway(process: number, atUs: number, isAway: boolean): void {
    // What was sent before a total was added is reported to the store when it is back.
    this.#totalsEpoch += 1;
    this.#storeChangedUs.set(process, atUs);
    if (isAway) this.#away.add(process);
    else this.#away.delete(process);
  }

  #dispatched(request: WireRequest, atUs: number): void {
    const { process } = request;
    const isChanging = atUs - (this.#storeChangedUs.get(process) ?? Number.NEGATIVE_INFINITY) <= JITTER_US;
    const isOldLease = atUs - this.#dataLostUs <= LEASE_US + JITTER_US;
    if (this.#away.has(process) || isChanging || isOldLease) this.#exempt.add(request);
    this.#sentUnder.set(
      request,
      this.#inForce(each => (each === process ? this.#policies.atGrant(each, atUs) : this.#policies.of(each))),
    );
  }

  #inForce(policyOf = (process: number) => this.#policies.of(process)): PoliciesOfAll {
    const versions = this.#plan.processes.map((_, each) => policyOf(each));
    const withTotals = versions.filter(({ hasTotals }) => hasTotals).length;
    return {
      totals: withTotals === 0 ? "none" : withTotals === versions.length ? "all" : "some",
      factor: Math.max(...versions.map(({ factor }) => factor)),
    };
  }

  #arrived(request: WireRequest, atUs: number): string | undefined {
    // Units leased before the loss of data are not in the new log.
    if (request.units === 0 || this.#exempt.has(request) || request.dispatchedUs < this.#dataLostUs) return undefined;
    if (this.#isOfFormerPartition(request)) return undefined;
    const host = hostOf(this.#plan, request);
    for (const scope of scopesOf(host, request)) {
      const message = this.#count(scope, request, request.units, atUs);
      if (message !== undefined) return message;
    }
    const credits = Math.min(request.credits, request.usedCredits);
    for (const scope of creditScopesOf(host, request)) {
      // Credits that were used before a total counted them are not known.
      if (scope.isTotal && this.#sentUnder.get(request)?.totals !== "all") continue;
      const message = this.#count(scope, request, credits, atUs);
      if (message !== undefined) return message;
    }
    return undefined;
  }

  /** If its partition was joined before it was written, the store counts it at the reload and again at its write. */
  #isOfFormerPartition({ process, key, host, dispatchedUs }: WireRequest): boolean {
    const { isPartitioned } = this.#policies.of(process);
    return key !== host && !isPartitioned && dispatchedUs < (this.#policies.reloadedUs(process) ?? 0);
  }

  #count({ name, rate, isTotal }: RateScope, request: WireRequest, units: number, atUs: number): string | undefined {
    const now = this.#inForce();
    const sentUnder = this.#sentUnder.get(request) ?? now;
    // Processes reload one after the other: one that has a total already cannot know what the others send without it.
    if (isTotal && sentUnder.totals === "some") return undefined;
    // The other processes know of a request in flight at the reload, and of its write once the store has the report.
    if (isTotal && sentUnder.totals === "none" && this.#plan.processes.length > 1) return undefined;
    const epoch = `${this.#epoch} ${isTotal ? this.#totalsEpoch : this.#joined}`;
    const log = logOf(this.#logs, `${epoch} ${request.host} ${name}`);
    log.add(atUs, units);
    // It may arrive after a reload, together with requests that were sent under the new policy.
    if (isTotal && (sentUnder.totals === "none" || now.totals !== "all")) return undefined;
    const { limit, windowMs } = scaled(rate, Math.max(sentUnder.factor, now.factor));
    const count = log.within(windowMs * 1000, atUs);
    if (count >= limit) this.#occasion();
    return count > limit
      ? `${count} units arrived at ${request.host} (${name}) within ${windowMs} ms; limit ${limit}`
      : undefined;
  }
}
