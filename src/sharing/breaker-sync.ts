import type { BreakerTeller } from "../breaker/breaker-emitter.ts";
import type { BreakerTable } from "../breaker/breaker-table.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { HostCooler } from "../breaker/cooldown-starter.ts";
import type { HostBreaker } from "../breaker/host-breaker.ts";
import { circuitOf, type SharedHost } from "../core/breaker/breaker-record.ts";
import type { Circuit, Probe } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { isRole } from "../policy/roles.ts";
import type { Time, Timer } from "../time/time.ts";
import type { Fleet, News, Subject } from "./peer-breakers.ts";

/** What of a registry others may change. */
export interface SharedRoom {
  readonly table: BreakerTable;
  readonly cooler: HostCooler;
  readonly teller: BreakerTeller;
  readonly time: Time;
  readonly lastPermit: () => number;
  readonly passable: (blocker: HostBreaker | CircuitHolder) => void;
  readonly forgive: (host: HostBreaker) => void;
}

/** As long as the longest call that a probe may be, and a margin; a process that died over it is not waited for longer. */
const LEASE_US = 35_000_000;
/** Leave that nobody makes use of goes back, for others. */
const UNUSED_MS = 1000;
/** Whoever was told no does not ask again at once. */
const REFUSED_US = 50_000;

/** Two deadlines so close to each other are one, told by two clocks. */
const SAME_US = 50_000;

type Leave =
  | { readonly kind: "asked"; readonly id: string; readonly answered: Promise<void> }
  | { readonly kind: "given"; readonly id: string; readonly giveBack: Timer }
  | { readonly kind: "refused"; readonly untilUs: number };

/**
 * The circuits of this process among those of others. What opens or closes here is told; what others tell is done here,
 * without being told again; and a probe needs leave from all.
 */
export class SharedCircuits {
  readonly #fleet: Fleet;
  readonly #room: SharedRoom;
  readonly #leave = new WeakMap<CircuitHolder, Leave>();
  /** The probes of this process, by circuit and permit, under the names that others know them by. */
  readonly #probes = new WeakMap<CircuitHolder, Map<number, string>>();
  #isHearing = false;

  constructor(fleet: Fleet, room: SharedRoom) {
    this.#fleet = fleet;
    this.#room = room;
  }

  /** What happens now is what others have told. */
  get isHearing(): boolean {
    return this.#isHearing;
  }

  cooled({ name }: HostBreaker, untilUs: number, reason: OpenReason): void {
    if (!this.#isHearing) this.#fleet.cooled(`host ${name}`, isOrder(reason) ? "ordered" : "asked", untilUs, reason);
  }

  cooldownEnded({ name }: HostBreaker): void {
    if (!this.#isHearing) this.#fleet.cooldownEnded(`host ${name}`);
  }

  forgiven({ name }: HostBreaker): void {
    if (!this.#isHearing) void this.#fleet.forgiven(`host ${name}`);
  }

  /** A circuit of this process has changed. */
  changed(holder: CircuitHolder, old: Circuit, now: Circuit): void {
    const probes = this.#probes.get(holder);
    const left = now.kind === "half-open" ? new Set(now.probes.map(({ id }) => id)) : undefined;
    const subject = subjectOf(holder);
    const circuit = circuitName(holder);
    if (!this.#isHearing) {
      if (now.kind === "open") this.#fleet.opened(subject, circuit, now.untilUs, now.reopened);
      const [[, first] = []] = probes ?? [];
      if (old.kind === "half-open" && now.kind === "closed" && first !== undefined)
        this.#fleet.closed(subject, circuit, first);
    }
    for (const [permit, id] of probes ?? []) {
      if (left?.has(permit)) continue;
      probes?.delete(permit);
      if (left !== undefined) this.#fleet.probeReturned(subject, circuit, id);
    }
    if (probes?.size === 0) this.#probes.delete(holder);
  }

  /** Whether a half-open circuit may be tried. If not, it is asked for, and `answered` tells when it is known. */
  mayProbe(
    holder: CircuitHolder,
    nowUs: number,
  ): true | { readonly untilUs: number; readonly answered: Promise<void> | undefined } {
    const leave = this.#leave.get(holder);
    if (leave?.kind === "given") return true;
    if (leave?.kind === "refused" && leave.untilUs > nowUs) return { untilUs: leave.untilUs, answered: undefined };
    const answered = leave?.kind === "asked" ? leave.answered : this.#ask(holder);
    return { untilUs: nowUs + UNUSED_MS * 1000, answered };
  }

  /** A probe goes out with the leave that there was. */
  sent(holder: CircuitHolder, permit: number): void {
    const leave = this.#leave.get(holder);
    if (leave?.kind !== "given") return;
    leave.giveBack.cancel();
    this.#leave.delete(holder);
    const probes = this.#probes.get(holder) ?? new Map<number, string>();
    probes.set(permit, leave.id);
    this.#probes.set(holder, probes);
  }

  hear({ subject, host, known }: News): void {
    this.#isHearing = true;
    try {
      if (subject.startsWith("host ")) this.#hearOfHost(subject.slice("host ".length), host, known);
      else this.#hearOfCircuit(this.#room.table.resolver(subject.slice("resolver ".length)), "", host, known);
    } finally {
      this.#isHearing = false;
    }
  }

  /** Says once more what a store that was away has not heard, or may have lost. */
  repeat(): void {
    const { table, time } = this.#room;
    const nowUs = time.monotonicUs();
    for (const host of table.hosts()) {
      const cooldown = host.cooldownAt(nowUs);
      if (cooldown !== undefined) this.cooled(host, cooldown.untilUs, cooldown.reason);
    }
    for (const holder of table.circuits()) {
      const circuit = holder.at(nowUs);
      if (circuit.kind === "open")
        this.#fleet.opened(subjectOf(holder), circuitName(holder), circuit.untilUs, circuit.reopened);
    }
  }

  #ask(holder: CircuitHolder): Promise<void> {
    const id = this.#fleet.nameProbe();
    const { trialCalls } = holder.policy;
    const answered = this.#fleet
      .takeProbe(subjectOf(holder), circuitName(holder), { id, trialCalls, leaseUs: LEASE_US })
      .then(isGiven => {
        const { time, passable } = this.#room;
        if (!isGiven) this.#leave.set(holder, { kind: "refused", untilUs: time.monotonicUs() + REFUSED_US });
        else this.#leave.set(holder, { kind: "given", id, giveBack: this.#giveBackLater(holder, id) });
        passable(holder);
      });
    this.#leave.set(holder, { kind: "asked", id, answered });
    return answered;
  }

  #giveBackLater(holder: CircuitHolder, id: string): Timer {
    return this.#room.time.setTimer(UNUSED_MS, () => {
      this.#leave.delete(holder);
      this.#fleet.probeReturned(subjectOf(holder), circuitName(holder), id);
    });
  }

  #hearOfHost(name: string, host: SharedHost, known: SharedHost): void {
    const { table, cooler, teller, time, lastPermit, passable, forgive } = this.#room;
    const nowUs = time.monotonicUs();
    const local = table.known(name);
    if (host.epoch !== known.epoch && local !== undefined) forgive(local);
    for (const part of ["asked", "ordered"] as const) {
      const { serial, untilUs, reason } = host[part];
      if (serial === known[part].serial) continue;
      const here = local?.cooldownAt(nowUs);
      if (local !== undefined && here?.reason === reason && here.untilUs >= untilUs - SAME_US) {
        // Its own word come back, or nearly the same of another: the later one counts, and is nothing to tell.
        if (untilUs > here.untilUs) local.cooldowns.set({ ...here, untilUs });
        continue;
      }
      if (untilUs > nowUs) {
        const ms = Math.min((untilUs - nowUs) / 1000, part === "asked" ? longestMs(table, name) : Infinity);
        cooler.cool(table.host(name), ms, reason as OpenReason, lastPermit());
      } else if (part === "asked" && local?.mayBeCooling && local.cooldowns.endAsked(nowUs)) {
        teller.cooldownEnded(name, "success");
        passable(local);
      }
    }
    for (const role of Object.keys(host.circuits)) {
      if (!isRole(role) || (local?.circuits[role] === undefined && circuitOf(host, role).isClosed)) continue;
      this.#hearOfCircuit(table.circuit(table.host(name), role), role, host, known);
    }
  }

  #hearOfCircuit(holder: CircuitHolder, name: string, host: SharedHost, known: SharedHost): void {
    const circuit = circuitOf(host, name);
    if (circuit.serial === circuitOf(known, name).serial) return;
    const own = new Set(this.#probes.get(holder)?.values());
    const leave = this.#leave.get(holder);
    if (leave !== undefined && leave.kind !== "refused") own.add(leave.id);
    // Numbers below 0, so that nobody here takes them for his own.
    const probes = circuit.probes.filter(({ id }) => !own.has(id)).map(asOthers);
    const nowUs = this.#room.time.monotonicUs();
    const here = holder.at(nowUs);
    // Its own word, come back: the same deadline by way of another clock.
    if (here.kind === "open" && !circuit.isClosed && Math.abs(here.untilUs - circuit.untilUs) <= SAME_US) return;
    holder.adopt({ ...circuit, probes }, nowUs);
  }
}

/** What a host may ask for at most. A clock that stepped, or another's policy, does not make it more (law B8). */
function longestMs({ policies }: BreakerTable, host: string): number {
  return Math.max(policies.retryAfterCapMs(host), policies.rollingWindow.cooldownMs);
}

export function subjectOf({ name: { host, resolver } }: CircuitHolder): Subject {
  return resolver === undefined ? `host ${host}` : `resolver ${resolver}`;
}

function circuitName({ name: { role } }: CircuitHolder): string {
  return role ?? "";
}

function asOthers({ expiresUs }: { readonly expiresUs: number }, index: number): Probe {
  return { id: -1 - index, expiresUs };
}

function isOrder(reason: OpenReason): boolean {
  return reason.startsWith("cli-open:");
}
