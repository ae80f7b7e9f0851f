import { setImmediate } from "node:timers/promises";
import { HubPolicy } from "../src/http/hub-policy.ts";
import { ROLES } from "../src/policy/roles.ts";
import { Clock } from "./clock.ts";
import type { SimFact, WireRequest } from "./facts.ts";
import { scheduleFault } from "./faults.ts";
import { Machine } from "./machine.ts";
import { type CallPlan, type HostPlan, lastFaultMs, type Plan } from "./plan.ts";
import { keyOf, policyOfPlan } from "./policy.ts";
import { ProcessTime } from "./process-time.ts";
import { Random } from "./random.ts";
import { SimProcess } from "./sim-process.ts";
import { SimServer } from "./sim-server.ts";
import { SimStore } from "./sim-store.ts";
import { SimWire } from "./sim-wire.ts";

/** No valid simulation takes more steps or more time; one that does is in an endless loop. */
const STEPS_MAX = 100_000;
const MAX_TIME_US = 6 * 3600e6;
/** Time between the last task and the final snapshots: longer than any window, lease or cooldown. */
const AFTERWARDS_US = 3600e6;
/** A process notices a silent store after a second, tries it again until it answers, and refuses calls meanwhile. */
const NOTICED_US = 5e6;

/** Called with every fact, and with the requests that changed in the same turn of the event loop. */
export type OnFact = (fact: SimFact, touched: ReadonlySet<WireRequest>) => void;

/** A simulated world: the processes, servers, network and store of a plan, on one clock. */
export class SimWorld {
  readonly #plan: Plan;
  readonly #onFact: OnFact;
  readonly #clock = new Clock();
  readonly #machine = new Machine(this.#clock);
  readonly #servers: ReadonlyMap<string, SimServer>;
  readonly #store: SimStore | undefined;
  readonly #touched = new Set<WireRequest>();
  #processes: readonly SimProcess[] = [];
  #requestCount = 0;
  #steps = 0;

  static async run(plan: Plan, onFact: OnFact): Promise<{ readonly requests: number; readonly steps: number }> {
    const world = new SimWorld(plan, onFact);
    await world.#run();
    return { requests: world.#requestCount, steps: world.#steps };
  }

  private constructor(plan: Plan, onFact: OnFact) {
    this.#plan = plan;
    this.#onFact = onFact;
    this.#servers = new Map(plan.hosts.map(host => [host.name, new SimServer(host)]));
    const isGenerous = plan.sabotage === "generous-store";
    this.#store =
      plan.store && new SimStore(this.#clock, this.#machine, plan.store, new Random(plan.seed, 3), isGenerous);
  }

  async #run(): Promise<void> {
    const { calls, faults } = this.#plan;
    this.#processes = await this.#startProcesses();
    const deps = { clock: this.#clock, machine: this.#machine, servers: this.#servers, store: this.#store };
    const process = (number: number) => this.#process(number);
    for (const fault of faults)
      scheduleFault(fault, { ...deps, process, processes: this.#processes, emit: fact => this.#emit(fact) });
    for (const call of calls) {
      const process = this.#process(call.process);
      this.#clock.at(call.atMs * 1000, process.time, () => process.startCall(call));
    }
    const calmUs = lastFaultMs(this.#plan) * 1000;
    const settledUs = this.#plan.store?.whenAway === "refuse" ? NOTICED_US : 1_000_000;
    this.#clock.at(calmUs + settledUs, undefined, () => this.#scheduleFinalCalls());
    await this.#runUntilIdle();
    this.#emitFinalSnapshots();
    await this.#close();
  }

  async #startProcesses(): Promise<readonly SimProcess[]> {
    const plan = this.#plan;
    const policy = await HubPolicy.load({ policy: policyOfPlan(plan), env: {} });
    const reloads = plan.faults.some(({ kind }) => kind === "reload");
    const processes: SimProcess[] = [];
    for (const [number, process] of plan.processes.entries()) {
      const time = new ProcessTime(this.#clock, this.#machine, process, new Random(plan.seed, 10 + number));
      const emit = (fact: SimFact) => this.#emit(fact);
      const wire = new SimWire({
        plan,
        process: number,
        clock: this.#clock,
        time,
        random: new Random(plan.seed, 20 + number),
        servers: this.#servers,
        emit,
        touch: request => this.#touched.add(request),
        nextId: () => {
          this.#requestCount += 1;
          return this.#requestCount - 1;
        },
      });
      const random = new Random(plan.seed, 30 + number);
      const store = this.#store?.member(`process ${number}`, time);
      // A reload changes the policy object, so each hub needs its own.
      const own = reloads ? await HubPolicy.load({ policy: policyOfPlan(plan), env: {} }) : policy;
      const deps = { plan, number, clock: this.#clock, time, random, wire, policy: own, store, emit };
      processes.push(await SimProcess.start(deps));
    }
    return processes;
  }

  /** Runs all tasks, each in its own turn of the event loop. */
  async #runUntilIdle(): Promise<void> {
    for (let task = this.#clock.next(); task !== undefined; task = this.#clock.next()) {
      this.#steps += 1;
      if (this.#steps > STEPS_MAX || this.#clock.nowUs > MAX_TIME_US) {
        this.#emit({ kind: "stuck", atUs: this.#clock.nowUs, message: `still running after ${this.#steps} steps` });
        return;
      }
      this.#touched.clear();
      task.run(task.dueUs);
      // Tasks of network and servers run no code of the hub.
      if (task.loop === undefined) continue;
      await settled();
    }
  }

  /** After the last fault, one call without a bound for each host and role in each process. */
  #scheduleFinalCalls(): void {
    let id = 1_000_000;
    for (const process of this.#processes) {
      if (process.time.isDead) continue;
      for (const { name, roleLimits } of this.#plan.hosts) {
        for (const role of ROLES) {
          if (roleLimits[role] === undefined) continue;
          id += 1;
          const call: CallPlan = {
            ...{ id, atMs: this.#clock.nowUs / 1000, process: process.number, host: name, role, method: "GET" },
            ...{ page: id, weight: 1, credits: undefined, usedCredits: 0, bodyMs: 0 },
            ...{ maxWaitMs: Number.POSITIVE_INFINITY, deadlineMs: undefined, abortMs: undefined, isRead: true },
          };
          this.#clock.at(this.#clock.nowUs, process.time, () => process.startCall(call, true));
        }
      }
    }
  }

  #emitFinalSnapshots(): void {
    this.#clock.advance(AFTERWARDS_US);
    const atUs = this.#clock.nowUs;
    for (const process of this.#processes) {
      if (process.time.isDead) continue;
      for (const { id } of process.openCalls) this.#emit({ kind: "stuck", atUs, message: `call ${id} never ends` });
      process.emitSnapshot(true);
    }
    if (this.#store === undefined) return;
    const keys = this.#plan.hosts.flatMap(host => [
      `total ${host.name}`,
      `total ${host.name} credits`,
      ...budgetNames(this.#plan, host).flatMap(name =>
        ROLES.flatMap(role => [`lane ${name} ${role}`, `lane ${name} ${role} credits`]),
      ),
    ]);
    this.#emit({ kind: "store-snapshot", atUs, pending: this.#store.pending(keys) });
  }

  async #close(): Promise<void> {
    const atUs = this.#clock.nowUs;
    const living = this.#processes.filter(({ time, openCalls }) => !time.isDead && openCalls.length === 0);
    let closed = 0;
    for (const process of living) {
      void process.close().then(() => {
        closed += 1;
      });
    }
    // The last message to the store is created in one turn and sent in the next.
    for (let round = 0; round < 2; round += 1) {
      await settled();
      await this.#runUntilIdle();
    }
    if (closed < living.length) this.#emit({ kind: "stuck", atUs, message: "a hub does not close" });
    for (const { number, time } of living) {
      if (time.armedTimers > 0)
        this.#emit({ kind: "stuck", atUs, message: `process ${number} leaves ${time.armedTimers} timers` });
    }
  }

  #process(number: number): SimProcess {
    const process = this.#processes[number];
    if (process === undefined) throw new RangeError(`the plan has no process ${number}`);
    return process;
  }

  #emit(fact: SimFact): void {
    this.#onFact(fact, this.#touched);
    // A new key may evict old ones, so this is the time for a snapshot.
    if (fact.kind === "dispatched" && fact.request.attempt === 1 && fact.request.id % 4 === 0)
      this.#processes[fact.request.process]?.emitSnapshot(false);
  }
}

/** Waits until all microtasks and the callbacks of the next turn have run. */
async function settled(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** The host, and the partitions of it that calls name. */
function budgetNames({ calls }: Plan, host: HostPlan): readonly string[] {
  const own = calls.filter(call => call.host === host.name);
  return [...new Set([host.name, ...own.map(call => keyOf(host, call))])];
}
