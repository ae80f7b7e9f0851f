import type { Dispatcher } from "undici";
import { BreakerRegistry } from "../src/breaker/breaker-registry.ts";
import { assembleHub } from "../src/http/create-hub.ts";
import type { Hub } from "../src/http/hub.ts";
import type { HubPolicy } from "../src/http/hub-policy.ts";
import type { Store } from "../src/stores/store.ts";
import type { Clock } from "./clock.ts";
import type { Fact } from "./facts.ts";
import type { CallPlan, Plan } from "./plan.ts";
import { toldPolicy } from "./policy.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Luck } from "./random.ts";
import { Caller } from "./sim-caller.ts";
import type { SimDispatchOptions, SimWire } from "./sim-wire.ts";

export interface ProcessRoom {
  readonly plan: Plan;
  readonly number: number;
  readonly clock: Clock;
  readonly time: ProcessTime;
  readonly luck: Luck;
  readonly wire: SimWire;
  readonly policy: HubPolicy;
  readonly store: Store | undefined;
  readonly tell: (fact: Fact) => void;
}

/** One process of the world: a whole hub, and those who call it. */
export class SimProcess {
  readonly #room: ProcessRoom;
  readonly #hub: Hub;
  readonly #breakers: BreakerRegistry;
  readonly #callers = new Set<Caller>();

  static async start(room: ProcessRoom): Promise<SimProcess> {
    const { plan, number, clock, time, luck, wire, policy, store, tell } = room;
    const random = () => luck.next();
    const breakers = new BreakerRegistry(policy.loaded.breakers.options, { time, random });
    const options = {
      time,
      random,
      dispatcher: wire as unknown as Dispatcher,
      cache: plan.sabotage === "forgetful-cache" ? (false as const) : ("memory" as const),
      retry: { attempts: plan.retryAttempts },
      unreadBodyMs: plan.unreadBodyMs,
    };
    const hub = await assembleHub(options, { policy, breakers, store });
    hub.listen(event => {
      // One comes with every question to the breakers, and no law asks for it.
      if (event.event_type !== "breaker_before_call")
        tell({ kind: "event", atUs: clock.nowUs, process: number, event });
    });
    return new SimProcess(room, hub, breakers);
  }

  private constructor(room: ProcessRoom, hub: Hub, breakers: BreakerRegistry) {
    this.#room = room;
    this.#hub = hub;
    this.#breakers = breakers;
  }

  get time(): ProcessTime {
    return this.#room.time;
  }

  get number(): number {
    return this.#room.number;
  }

  /** Calls that are not over. */
  get calling(): readonly CallPlan[] {
    return Array.from(this.#callers, ({ call }) => call);
  }

  make(call: CallPlan, isFinal = false): void {
    const { clock, tell, number } = this.#room;
    tell({ kind: "call", atUs: clock.nowUs, process: number, call });
    const caller = new Caller(call, {
      started: () => undefined,
      done: (_, status, error) => {
        this.#callers.delete(caller);
        tell({ kind: "done", atUs: clock.nowUs, process: number, call, status, error, isFinal });
      },
    });
    this.#callers.add(caller);
    const { host, role, method, page, weight, maxWaitMs, deadlineMs, abortMs } = call;
    const options: SimDispatchOptions & Record<string, unknown> = {
      origin: `https://${host}`,
      path: `/${role}/${page}`,
      method,
      role,
      weight,
      simCall: call,
      ...(maxWaitMs === undefined ? {} : { maxWaitMs }),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
    };
    this.#hub.dispatcher().dispatch(options, caller);
    if (abortMs !== undefined) clock.at(clock.nowUs + abortMs * 1000, this.time, () => caller.abort());
  }

  operate(host: string, openS: number): void {
    if (openS > 0) this.#breakers.open(host, openS);
    else this.#breakers.close(host);
  }

  async reload(factor: number): Promise<void> {
    const { plan, clock, tell, number } = this.#room;
    const told = { kind: "reloaded", atUs: clock.nowUs, process: number, factor } as const;
    tell({ ...told, isDone: false });
    await this.#hub.reload(toldPolicy(plan, factor));
    tell({ ...told, isDone: true });
  }

  look(isLast: boolean): void {
    const { clock, tell, number, time } = this.#room;
    const { calls, inFlight, waiting, lanes } = this.#hub.snapshot();
    tell({
      kind: "look",
      atUs: clock.nowUs,
      process: number,
      isLast,
      calls,
      inFlight,
      waiting,
      timers: time.armed,
      lanes: lanes.map(({ host, role, windows, inFlight: busy }) => ({
        host,
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
