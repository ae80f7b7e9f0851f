import { setImmediate } from "node:timers/promises";
import { HubPolicy } from "../src/http/hub-policy.ts";
import { ROLES } from "../src/policy/roles.ts";
import { Clock } from "./clock.ts";
import type { Fact, Sending } from "./facts.ts";
import { arrangeFault } from "./faults.ts";
import { Machine } from "./machine.ts";
import { type CallPlan, lastFaultMs, type Plan } from "./plan.ts";
import { toldPolicy } from "./policy.ts";
import { ProcessTime } from "./process-time.ts";
import { Luck } from "./random.ts";
import { SimProcess } from "./sim-process.ts";
import { SimServer } from "./sim-server.ts";
import { SharedStore } from "./sim-store.ts";
import { SimWire } from "./sim-wire.ts";

/** Nothing in here takes so many steps, or so long; what does goes round in circles. */
const STEPS_MAX = 100_000;
const LONGEST_US = 6 * 3600e6;
/** When everything is over nothing of it can matter any more. */
const AFTERWARDS_US = 3600e6;

/** Hears every step, and what was touched in the turn that it belongs to. */
export type Witness = (fact: Fact, touched: ReadonlySet<Sending>) => void;

/** Everything that a plan speaks of, on one clock. */
export class World {
  readonly #plan: Plan;
  readonly #witness: Witness;
  readonly #clock = new Clock();
  readonly #machine = new Machine(this.#clock);
  readonly #servers: ReadonlyMap<string, SimServer>;
  readonly #store: SharedStore | undefined;
  readonly #touched = new Set<Sending>();
  #processes: readonly SimProcess[] = [];
  #sendings = 0;
  #steps = 0;

  static async run(plan: Plan, witness: Witness): Promise<{ readonly requests: number; readonly steps: number }> {
    const world = new World(plan, witness);
    await world.#run();
    return { requests: world.#sendings, steps: world.#steps };
  }

  private constructor(plan: Plan, witness: Witness) {
    this.#plan = plan;
    this.#witness = witness;
    this.#servers = new Map(plan.hosts.map(host => [host.name, new SimServer(host)]));
    const isGenerous = plan.sabotage === "generous-store";
    this.#store =
      plan.store && new SharedStore(this.#clock, this.#machine, plan.store, new Luck(plan.seed, 3), isGenerous);
  }

  async #run(): Promise<void> {
    const { calls, faults } = this.#plan;
    this.#processes = await this.#started();
    const room = { clock: this.#clock, machine: this.#machine, servers: this.#servers, store: this.#store };
    const process = (number: number) => this.#process(number);
    for (const fault of faults)
      arrangeFault(fault, { ...room, process, processes: this.#processes, tell: fact => this.#tell(fact) });
    for (const call of calls) {
      const process = this.#process(call.process);
      this.#clock.at(call.atMs * 1000, process.time, () => process.make(call));
    }
    const calmUs = lastFaultMs(this.#plan) * 1000;
    this.#clock.at(calmUs + 1_000_000, undefined, () => this.#tryEverything());
    await this.#goOn();
    this.#judgeEnd();
    await this.#close();
  }

  async #started(): Promise<readonly SimProcess[]> {
    const plan = this.#plan;
    const policy = await HubPolicy.load({ policy: toldPolicy(plan), env: {} });
    const reloads = plan.faults.some(({ kind }) => kind === "reload");
    const processes: SimProcess[] = [];
    for (const [number, process] of plan.processes.entries()) {
      const time = new ProcessTime(this.#clock, this.#machine, process, new Luck(plan.seed, 10 + number));
      const tell = (fact: Fact) => this.#tell(fact);
      const wire = new SimWire({
        plan,
        process: number,
        clock: this.#clock,
        time,
        luck: new Luck(plan.seed, 20 + number),
        servers: this.#servers,
        tell,
        touch: sending => this.#touched.add(sending),
        nextId: () => {
          this.#sendings += 1;
          return this.#sendings - 1;
        },
      });
      const luck = new Luck(plan.seed, 30 + number);
      const store = this.#store?.member(`process ${number}`, time);
      // A reload changes a policy in place: then each hub needs its own.
      const own = reloads ? await HubPolicy.load({ policy: toldPolicy(plan), env: {} }) : policy;
      const room = { plan, number, clock: this.#clock, time, luck, wire, policy: own, store, tell };
      processes.push(await SimProcess.start(room));
    }
    return processes;
  }

  /** Lets everything happen that is going to, each in a turn of the event loop of its own. */
  async #goOn(): Promise<void> {
    for (let alarm = this.#clock.next(); alarm !== undefined; alarm = this.#clock.next()) {
      this.#steps += 1;
      if (this.#steps > STEPS_MAX || this.#clock.nowUs > LONGEST_US) {
        this.#tell({ kind: "stuck", atUs: this.#clock.nowUs, message: `goes on after ${this.#steps} steps` });
        return;
      }
      this.#touched.clear();
      alarm.run(alarm.dueUs);
      // Nothing of the hub runs in the world outside.
      if (alarm.loop === undefined) continue;
      await settled();
    }
  }

  /** After the last fault every lane of every process is asked once more, by somebody who waits as long as it takes. */
  #tryEverything(): void {
    let id = 1_000_000;
    for (const process of this.#processes) {
      if (process.time.isDead) continue;
      for (const { name, lanes } of this.#plan.hosts) {
        for (const role of ROLES) {
          if (lanes[role] === undefined) continue;
          id += 1;
          const call: CallPlan = {
            ...{ id, atMs: this.#clock.nowUs / 1000, process: process.number, host: name, role, method: "GET" },
            ...{ page: id, weight: 1, maxWaitMs: Number.POSITIVE_INFINITY, deadlineMs: undefined },
            ...{ abortMs: undefined, isRead: true },
          };
          this.#clock.at(this.#clock.nowUs, process.time, () => process.make(call, true));
        }
      }
    }
  }

  #judgeEnd(): void {
    this.#clock.creep(AFTERWARDS_US);
    const atUs = this.#clock.nowUs;
    for (const process of this.#processes) {
      if (process.time.isDead) continue;
      for (const { id } of process.calling) this.#tell({ kind: "stuck", atUs, message: `call ${id} never ends` });
      process.look(true);
    }
    if (this.#store === undefined) return;
    const keys = this.#plan.hosts.flatMap(({ name }) => [
      `total ${name}`,
      ...ROLES.map(role => `lane ${name} ${role}`),
    ]);
    this.#tell({ kind: "store-look", atUs, pending: this.#store.pending(keys) });
  }

  async #close(): Promise<void> {
    const atUs = this.#clock.nowUs;
    const living = this.#processes.filter(({ time, calling }) => !time.isDead && calling.length === 0);
    let closed = 0;
    for (const process of living) {
      void process.close().then(() => {
        closed += 1;
      });
    }
    // What is said to the store at the end is asked for in one turn, and travels in the next.
    for (let round = 0; round < 2; round += 1) {
      await settled();
      await this.#goOn();
    }
    if (closed < living.length) this.#tell({ kind: "stuck", atUs, message: "a hub does not close" });
    for (const { number, time } of living) {
      if (time.armed > 0) this.#tell({ kind: "stuck", atUs, message: `process ${number} leaves ${time.armed} timers` });
    }
  }

  #process(number: number): SimProcess {
    const process = this.#processes[number];
    if (process === undefined) throw new RangeError(`the plan has no process ${number}`);
    return process;
  }

  #tell(fact: Fact): void {
    this.#witness(fact, this.#touched);
    // Lanes are made, and forgotten, when one is new: that is when to look.
    if (fact.kind === "dispatched" && fact.sending.attempt === 1 && fact.sending.id % 4 === 0)
      this.#processes[fact.sending.process]?.look(false);
  }
}

/** All that was set off has run: microtasks, and what asked for the next turn of the loop. */
async function settled(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
