import type { BudgetPolicy } from "../../policy/budget-policy.ts";
import type { LimitPolicies } from "../../policy/limit-policies.ts";
import { hostLabel, type PlannedCall } from "./call-plan.ts";
import { type RateWindow, timeFor, unitsIn } from "./window-time.ts";

/** The expected requests to one service, and the time that they take. */
export interface ServiceEstimate {
  /** A host, a service, or `publisher of 10.1234`. */
  readonly service: string;
  /** `total` for a limit over all roles. */
  readonly role: string;
  /** Expected requests, weighted as the limit counts them. */
  readonly calls: number;
  /** `5/SECOND + 5000/HOUR`. */
  readonly limits: string;
  /** How long the limits take for these calls. */
  readonly ms: number;
  /** Calls that the run does not send: their quota is spent, and the run does not wait until it is renewed. */
  readonly unsent: number;
}

export interface RunEstimate {
  readonly works: number;
  /** Works by the kind of their identifier. */
  readonly kinds: Readonly<Record<string, number>>;
  /** How long the run takes: as long as its slowest service. */
  readonly ms: number;
  /** The longest first. */
  readonly services: readonly ServiceEstimate[];
}

interface BudgetUse {
  readonly service: string;
  readonly role: string;
  readonly limits: string;
  readonly windows: readonly RateWindow[];
  units: number;
  /** Whether the works continue without these calls if the quota is spent. */
  isDispensable: boolean;
}

/** A service with a longer wait is skipped if other services may know the work: see `LONG_WAIT_MS` in refused-step.ts. */
const SHORT_WINDOW_MS = 30_000;
/** Each round covers one more renewal of a quota. After this many, even a run of many days is estimated well enough. */
const ROUNDS_MAX = 100;

/** Collects the expected requests of works, and computes how long the limits take for them. The slowest service decides. */
export class RunEstimator {
  readonly #limits: LimitPolicies;
  readonly #budgets = new Map<string, BudgetUse>();
  readonly #kinds: Record<string, number> = {};
  #works = 0;

  constructor(limits: LimitPolicies) {
    this.#limits = limits;
  }

  /**
   * @param kind the scheme of the identifiers: `doi`, `arxiv`
   * @param works how many works have these calls
   */
  add(kind: string, works: number, calls: readonly PlannedCall[]): void {
    this.#works += works;
    this.#kinds[kind] = (this.#kinds[kind] ?? 0) + works;
    for (const { host, path, role, units, isDispensable } of calls) {
      const { name, roleBudget, above } = this.#limits.route(host, role, path);
      this.#use(hostLabel(name), role, roleBudget, units * works, isDispensable);
      // Requests of a role in shadow mode wait for no total either.
      if (roleBudget.isShadow) continue;
      for (const total of above) this.#use(hostLabel(total.name), "total", total.policy, units * works, isDispensable);
    }
  }

  /** @param maxBreakerWaitMs how long the run waits for a spent quota when nothing else is left */
  estimate(maxBreakerWaitMs: number): RunEstimate {
    const plans = [...this.#budgets.values()]
      .filter(({ limits }) => limits !== "")
      .map(use => {
        const longestMs = use.isDispensable ? SHORT_WINDOW_MS : Math.max(SHORT_WINDOW_MS, maxBreakerWaitMs);
        // The run waits for the short windows. When a long window is full, further calls are not sent.
        const short = use.windows.filter(({ windowMs }) => windowMs <= longestMs);
        const long = use.windows.filter(({ windowMs }) => windowMs > longestMs);
        const sentIn = (runMs: number) => Math.min(use.units, unitsIn(runMs, long));
        return { use, timeIn: (runMs: number) => timeFor(sentIn(runMs), short), sentIn };
      });
    // While the run lasts, quotas are renewed. The calls that they then permit may make the run longer.
    let ms = 0;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const next = Math.max(0, ...plans.map(({ timeIn }) => timeIn(ms)));
      if (next <= ms) break;
      ms = next;
    }
    const services = plans.map(
      ({ use, timeIn, sentIn }): ServiceEstimate => ({
        service: use.service,
        role: use.role,
        calls: Math.ceil(use.units - 1e-9),
        limits: use.limits,
        ms: timeIn(ms),
        unsent: Math.round(use.units - sentIn(ms)),
      }),
    );
    services.sort((one, other) => other.ms - one.ms || other.calls - one.calls);
    return { works: this.#works, kinds: this.#kinds, ms, services };
  }

  #use(
    service: string,
    role: string,
    policy: BudgetPolicy & { readonly isShadow?: boolean },
    units: number,
    isDispensable: boolean,
  ): void {
    const key = `${service} ${role}`;
    const known = this.#budgets.get(key);
    if (known === undefined) {
      const rates = policy.labels.join(" + ");
      const windows = policy.isShadow
        ? []
        : policy.rates.map(({ limit, windowUs }) => ({ limit, windowMs: (windowUs + policy.guardUs) / 1000 }));
      const limits = policy.isShadow && rates !== "" ? `${rates} (shadow mode)` : rates;
      this.#budgets.set(key, { service, role, limits, windows, units, isDispensable });
      return;
    }
    known.units += units;
    known.isDispensable &&= isDispensable;
  }
}
