import type { Dispatcher } from "undici";
import { RateLimitExceeded } from "../src/errors.ts";
import { BreakerRegistry } from "../src/gate/breaker-registry.ts";
import { assembleHub } from "../src/http/create-hub.ts";
import type { Hub } from "../src/http/hub.ts";
import { HubPolicy } from "../src/http/hub-policy.ts";
import type { Store } from "../src/stores/store.ts";
import type { Clock } from "./clock.ts";
import type { SimFact } from "./facts.ts";
import type { CallPlan, Plan } from "./plan.ts";
import { type PolicyVersion, policyOfPlan } from "./policy.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Random } from "./random.ts";
import { SimCaller } from "./sim-caller.ts";
import type { SimDispatchOptions, SimWire } from "./sim-wire.ts";

export interface ProcessDeps {
  readonly plan: Plan;
  readonly number: number;
  readonly clock: Clock;
  readonly time: ProcessTime;
  readonly random: Random;
  readonly wire: SimWire;
  readonly policy: HubPolicy;
  readonly store: Store | undefined;
  readonly emit: (fact: SimFact) => void;
}

/** Wrong estimates, to test that a law detects them. */
const ESTIMATE_FACTORS: Readonly<Record<string, number>> = { "early-estimates": 0.5, "late-estimates": 50 };

/** One simulated process: a complete hub and its callers. */
export class SimProcess {
  readonly #deps: ProcessDeps;
  #hub: Hub;
  readonly #breakers: BreakerRegistry;
  readonly #callers = new Set<SimCaller>();

  static async start(deps: ProcessDeps): Promise<SimProcess> {
    const { hub, breakers } = await assemble(deps, deps.policy);
    return new SimProcess(deps, hub, breakers);
  }

  private constructor(deps: ProcessDeps, hub: Hub, breakers: BreakerRegistry) {
    this.#deps = deps;
    this.#hub = hub;
    this.#breakers = breakers;
  }

  get time(): ProcessTime {
    return this.#deps.time;
  }

  get number(): number {
    return this.#deps.number;
  }

  /** Calls that have not ended. */
  get openCalls(): readonly CallPlan[] {
    return Array.from(this.#callers, ({ call }) => call);
  }

  startCall(call: CallPlan, isFinal = false): void {
    const { clock, emit, number, plan } = this.#deps;
    emit({ kind: "call", atUs: clock.nowUs, process: number, call });
    const caller = new SimCaller(call, (status, error, told) => {
      this.#callers.delete(caller);
      const retryAfterMs = told && told * (ESTIMATE_FACTORS[plan.sabotage ?? ""] ?? 1);
      emit({ kind: "done", atUs: clock.nowUs, process: number, call, status, error, retryAfterMs, isFinal });
    });
    this.#callers.add(caller);
    const { host, role, method, page, partition, weight, credits, deadlineMs, abortMs } = call;
    const maxWaitMs = plan.sabotage === "exhausted-bounds" ? Number.POSITIVE_INFINITY : call.maxWaitMs;
    const options: SimDispatchOptions & Record<string, unknown> = {
      origin: `https://${host}`,
      path: `/${role}/${page}`,
      method,
      role,
      weight,
      simCall: call,
      ...(partition === undefined ? {} : sentPartition(plan, call)),
      ...(credits === undefined ? {} : { costs: { credits } }),
      ...(maxWaitMs === undefined ? {} : { maxWaitMs }),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    };
    this.#hub.dispatcher().dispatch(options, caller);
    if (abortMs !== undefined) clock.at(clock.nowUs + abortMs * 1000, this.time, () => caller.abort());
    if (plan.sabotage === "exhausted-bounds" && Number.isFinite(call.maxWaitMs))
      clock.at(clock.nowUs + (call.maxWaitMs ?? 0) * 1000, this.time, () => caller.abort(overdue(host, role)));
  }

  operate(host: string, openS: number): void {
    if (openS > 0) this.#breakers.open(host, openS);
    else this.#breakers.close(host);
  }

  async reload(version: PolicyVersion): Promise<void> {
    const { plan, clock, emit, number } = this.#deps;
    const reloadFact = { kind: "reloaded", atUs: clock.nowUs, process: number, ...version } as const;
    emit({ ...reloadFact, isDone: false });
    const policy = policyOfPlan(plan, version);
    if (plan.sabotage === "forgetful-reload")
      this.#hub = (await assemble(this.#deps, await HubPolicy.load({ policy, env: {} }))).hub;
    else await this.#hub.reload(policy);
    emit({ ...reloadFact, isDone: true });
  }

  emitSnapshot(isLast: boolean): void {
    const { clock, emit, number, time } = this.#deps;
    const { calls, inFlight, waiting, keys } = this.#hub.snapshot();
    emit({
      kind: "snapshot",
      atUs: clock.nowUs,
      process: number,
      isLast,
      calls,
      inFlight,
      waiting,
      timers: time.armedTimers,
      keys: keys.map(({ key, role, windows, inFlight: busy }) => ({
        host: key,
        role,
        used: Math.max(0, ...windows.map(({ used }) => used)),
        inFlight: busy,
      })),
    });
  }

  close(): Promise<void> {
    return this.#hub.close();
  }
}

async function assemble(
  { plan, number, clock, time, random, wire, store, emit }: ProcessDeps,
  policy: HubPolicy,
): Promise<{ readonly hub: Hub; readonly breakers: BreakerRegistry }> {
  const nextRandom = () => random.next();
  const breakers = new BreakerRegistry(policy.loaded.breakers.options, { time, random: nextRandom });
  const options = {
    time,
    random: nextRandom,
    dispatcher: wire as unknown as Dispatcher,
    cache: plan.sabotage === "forgetful-cache" ? (false as const) : ("memory" as const),
    retry: { attempts: plan.retryAttempts },
    unreadBodyMs: plan.unreadBodyMs,
  };
  const hub = await assembleHub(options, { policy, breakers, store, keptKeys: plan.keptKeys });
  hub.listen(event => {
    // Emitted for every check of a breaker, and not used by any law.
    if (event.event_type !== "breaker_before_call") emit({ kind: "event", atUs: clock.nowUs, process: number, event });
  });
  return { hub, breakers };
}

/** The partition that the hub is told. */
function sentPartition({ sabotage }: Plan, { partition, id }: CallPlan): { readonly partition?: string | undefined } {
  if (sabotage === "deaf-to-partitions") return {};
  return { partition: sabotage === "split-partitions" ? `${partition} ${id}` : partition };
}

/** What a limiter would say that refuses a call only when its bound is over. */
function overdue(host: string, role: string): RateLimitExceeded {
  const constraint = { kind: "window", owner: host, limit: "" } as const;
  return new RateLimitExceeded({ host, role, constraint, maxWaitMs: 0, retryAfterMs: 60_000 });
}
