import type { BreakerEmitter } from "../breaker/breaker-emitter.ts";
import type { BreakerTable } from "../breaker/breaker-table.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { CooldownStarter } from "../breaker/cooldown-starter.ts";
import type { HostBreaker } from "../breaker/host-breaker.ts";
import { type BreakerRecord, circuitRecordOf } from "../core/breaker/breaker-record.ts";
import type { Circuit, Probe } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { isRole } from "../policy/roles.ts";
import type { Time, Timer } from "../time/time.ts";
import type { BreakerRecordName, PeerBreakers, PeerRecordChange } from "./peer-breakers.ts";

/** What of a registry others may change. */
export interface BreakerSyncDeps {
  readonly table: BreakerTable;
  readonly cooldownStarter: CooldownStarter;
  readonly emitter: BreakerEmitter;
  readonly time: Time;
  readonly lastPermit: () => number;
  readonly unblocked: (blocker: HostBreaker | CircuitHolder) => void;
  readonly reset: (host: HostBreaker) => void;
}

/** As long as the longest call that a probe may be, and a margin; a process that died over it is not waited for longer. */
const PROBE_LEASE_US = 35_000_000;
/** Leave that nobody makes use of goes back, for others. */
const UNUSED_MS = 1000;
/** Whoever was told no does not ask again at once. */
const REFUSED_US = 50_000;

/** Two deadlines so close to each other are one, told by two clocks. */
const SAME_US = 50_000;

type ProbePermission =
  | { readonly kind: "requested"; readonly id: string; readonly probeReply: Promise<void> }
  | { readonly kind: "given"; readonly id: string; readonly returnTimer: Timer }
  | { readonly kind: "refused"; readonly untilUs: number };

/**
 * The circuits of this process among those of others. What opens or closes here is told; what others tell is done here,
 * without being told again; and a probe needs leave from all.
 */
export class BreakerSync {
  readonly #peerBreakers: PeerBreakers;
  readonly #deps: BreakerSyncDeps;
  readonly #permissions = new WeakMap<CircuitHolder, ProbePermission>();
  /** The probes of this process, by circuit and permit, under the names that others know them by. */
  readonly #probes = new WeakMap<CircuitHolder, Map<number, string>>();
  #isApplyingPeers = false;

  constructor(peerBreakers: PeerBreakers, deps: BreakerSyncDeps) {
    this.#peerBreakers = peerBreakers;
    this.#deps = deps;
  }

  /** What happens now is what others have told. */
  get isApplyingPeers(): boolean {
    return this.#isApplyingPeers;
  }

  cooled({ name }: HostBreaker, untilUs: number, reason: OpenReason): void {
    if (!this.#isApplyingPeers)
      this.#peerBreakers.cooled(
        `host ${name}`,
        isOperatorOrder(reason) ? "operatorCooldown" : "serverCooldown",
        untilUs,
        reason,
      );
  }

  cooldownEnded({ name }: HostBreaker): void {
    if (!this.#isApplyingPeers) this.#peerBreakers.cooldownEnded(`host ${name}`);
  }

  hostReset({ name }: HostBreaker): void {
    if (!this.#isApplyingPeers) void this.#peerBreakers.hostReset(`host ${name}`);
  }

  /** A circuit of this process has changed. */
  changed(holder: CircuitHolder, old: Circuit, now: Circuit): void {
    const probes = this.#probes.get(holder);
    const left = now.kind === "half-open" ? new Set(now.probes.map(({ id }) => id)) : undefined;
    const recordName = recordNameOf(holder);
    const circuit = circuitName(holder);
    if (!this.#isApplyingPeers) {
      if (now.kind === "open") this.#peerBreakers.opened(recordName, circuit, now.untilUs, now.reopened);
      const [[, first] = []] = probes ?? [];
      if (old.kind === "half-open" && now.kind === "closed" && first !== undefined)
        this.#peerBreakers.closed(recordName, circuit, first);
    }
    for (const [permit, id] of probes ?? []) {
      if (left?.has(permit)) continue;
      probes?.delete(permit);
      if (left !== undefined) this.#peerBreakers.probeReturned(recordName, circuit, id);
    }
    if (probes?.size === 0) this.#probes.delete(holder);
  }

  /** Whether a half-open circuit may be tried. If not, it is asked for, and `answered` tells when it is known. */
  mayProbe(
    holder: CircuitHolder,
    nowUs: number,
  ): true | { readonly untilUs: number; readonly probeReply: Promise<void> | undefined } {
    const permission = this.#permissions.get(holder);
    if (permission?.kind === "given") return true;
    if (permission?.kind === "refused" && permission.untilUs > nowUs)
      return { untilUs: permission.untilUs, probeReply: undefined };
    const probeReply = permission?.kind === "requested" ? permission.probeReply : this.#requestProbe(holder);
    return { untilUs: nowUs + UNUSED_MS * 1000, probeReply };
  }

  /** A probe goes out with the leave that there was. */
  probeSent(holder: CircuitHolder, permit: number): void {
    const permission = this.#permissions.get(holder);
    if (permission?.kind !== "given") return;
    permission.returnTimer.cancel();
    this.#permissions.delete(holder);
    const probes = this.#probes.get(holder) ?? new Map<number, string>();
    probes.set(permit, permission.id);
    this.#probes.set(holder, probes);
  }

  apply({ recordName, host, known }: PeerRecordChange): void {
    this.#isApplyingPeers = true;
    try {
      if (recordName.startsWith("host ")) this.#applyHost(recordName.slice("host ".length), host, known);
      else this.#applyCircuit(this.#deps.table.resolver(recordName.slice("resolver ".length)), "", host, known);
    } finally {
      this.#isApplyingPeers = false;
    }
  }

  /** Says once more what a store that was away has not heard, or may have lost. */
  republish(): void {
    const { table, time } = this.#deps;
    const nowUs = time.monotonicUs();
    for (const host of table.hosts()) {
      const cooldown = host.cooldownAt(nowUs);
      if (cooldown !== undefined) this.cooled(host, cooldown.untilUs, cooldown.reason);
    }
    for (const holder of table.circuits()) {
      const circuit = holder.at(nowUs);
      if (circuit.kind === "open")
        this.#peerBreakers.opened(recordNameOf(holder), circuitName(holder), circuit.untilUs, circuit.reopened);
    }
  }

  #requestProbe(holder: CircuitHolder): Promise<void> {
    const id = this.#peerBreakers.newProbeId();
    const { trialCalls } = holder.policy;
    const probeReply = this.#peerBreakers
      .requestProbe(recordNameOf(holder), circuitName(holder), { id, trialCalls, leaseUs: PROBE_LEASE_US })
      .then(isGranted => {
        const { time, unblocked } = this.#deps;
        if (!isGranted) this.#permissions.set(holder, { kind: "refused", untilUs: time.monotonicUs() + REFUSED_US });
        else this.#permissions.set(holder, { kind: "given", id, returnTimer: this.#returnLater(holder, id) });
        unblocked(holder);
      });
    this.#permissions.set(holder, { kind: "requested", id, probeReply });
    return probeReply;
  }

  #returnLater(holder: CircuitHolder, id: string): Timer {
    return this.#deps.time.setTimer(UNUSED_MS, () => {
      this.#permissions.delete(holder);
      this.#peerBreakers.probeReturned(recordNameOf(holder), circuitName(holder), id);
    });
  }

  #applyHost(name: string, host: BreakerRecord, known: BreakerRecord): void {
    const { table, cooldownStarter, emitter, time, lastPermit, unblocked, reset } = this.#deps;
    const nowUs = time.monotonicUs();
    const local = table.find(name);
    if (host.epoch !== known.epoch && local !== undefined) reset(local);
    for (const part of ["serverCooldown", "operatorCooldown"] as const) {
      const { serial, untilUs, reason } = host[part];
      if (serial === known[part].serial) continue;
      const current = local?.cooldownAt(nowUs);
      if (local !== undefined && current?.reason === reason && current.untilUs >= untilUs - SAME_US) {
        // Its own word come back, or nearly the same of another: the later one counts, and is nothing to tell.
        if (untilUs > current.untilUs) local.cooldowns.set({ ...current, untilUs });
        continue;
      }
      if (untilUs > nowUs) {
        const ms = Math.min((untilUs - nowUs) / 1000, part === "serverCooldown" ? longestMs(table, name) : Infinity);
        cooldownStarter.start(table.host(name), ms, reason as OpenReason, lastPermit());
      } else if (part === "serverCooldown" && local?.mayHaveCooldown && local.cooldowns.endRequested(nowUs)) {
        emitter.cooldownEnded(name, "success");
        unblocked(local);
      }
    }
    for (const role of Object.keys(host.circuits)) {
      if (!isRole(role) || (local?.circuits[role] === undefined && circuitRecordOf(host, role).isClosed)) continue;
      this.#applyCircuit(table.circuit(table.host(name), role), role, host, known);
    }
  }

  #applyCircuit(holder: CircuitHolder, name: string, host: BreakerRecord, known: BreakerRecord): void {
    const circuit = circuitRecordOf(host, name);
    if (circuit.serial === circuitRecordOf(known, name).serial) return;
    const own = new Set(this.#probes.get(holder)?.values());
    const permission = this.#permissions.get(holder);
    if (permission !== undefined && permission.kind !== "refused") own.add(permission.id);
    // Numbers below 0, so that nobody here takes them for his own.
    const probes = circuit.probes.filter(({ id }) => !own.has(id)).map(peerProbe);
    const nowUs = this.#deps.time.monotonicUs();
    const current = holder.at(nowUs);
    // Its own word, come back: the same deadline by way of another clock.
    if (current.kind === "open" && !circuit.isClosed && Math.abs(current.untilUs - circuit.untilUs) <= SAME_US) return;
    holder.adopt({ ...circuit, probes }, nowUs);
  }
}

/** What a host may ask for at most. A clock that stepped, or another's policy, does not make it more (law B8). */
function longestMs({ policies }: BreakerTable, host: string): number {
  return Math.max(policies.retryAfterCapMs(host), policies.rollingWindow.cooldownMs);
}

export function recordNameOf({ name: { host, resolver } }: CircuitHolder): BreakerRecordName {
  return resolver === undefined ? `host ${host}` : `resolver ${resolver}`;
}

function circuitName({ name: { role } }: CircuitHolder): string {
  return role ?? "";
}

function peerProbe({ expiresUs }: { readonly expiresUs: number }, index: number): Probe {
  return { id: -1 - index, expiresUs };
}

function isOperatorOrder(reason: OpenReason): boolean {
  return reason.startsWith("cli-open:");
}
