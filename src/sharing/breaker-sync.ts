import type { BreakerTable } from "../breaker/breaker-table.ts";
import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { HostBreaker } from "../breaker/host-breaker.ts";
import { isOperatorReason } from "../breaker/operator-reason.ts";
import type { BreakerSyncDeps, PeerSync } from "../breaker/peer-sync.ts";
import { type BreakerRecord, circuitRecordOf } from "../core/breaker/breaker-record.ts";
import type { Circuit, Probe } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { isRole } from "../policy/roles.ts";
import {
  type BreakerRecordName,
  hostOfRecord,
  hostRecordName,
  resolverOfRecord,
  resolverRecordName,
} from "../stores/record-names.ts";
import type { Timer } from "../time/time.ts";
import type { PeerBreakers, PeerRecordChange } from "./peer-breakers.ts";

/** The longest call of a probe (30 s) and a margin. The probe of a process that died is free again after this. */
const PROBE_LEASE_US = 35_000_000;
/** A probe permission that is not used within this time is returned. */
const UNUSED_MS = 1000;
/** After a refusal the store is not asked again before this. */
const REFUSED_US = 50_000;

/** Deadlines that differ by less than this are the same one, converted between two clocks. */
const SAME_US = 50_000;

type ProbePermission =
  | { readonly kind: "requested"; readonly id: string; readonly probeReply: Promise<void> }
  | { readonly kind: "granted"; readonly id: string; readonly returnTimer: Timer }
  | { readonly kind: "refused"; readonly untilUs: number };

/**
 * Synchronizes the circuits of this process with the shared records. Local transitions are written to the store,
 * records of other processes are applied here without being written again, and a probe needs a lease from the store.
 */
export class BreakerSync implements PeerSync {
  readonly #peerBreakers: PeerBreakers;
  readonly #deps: BreakerSyncDeps;
  readonly #permissions = new WeakMap<CircuitHolder, ProbePermission>();
  /** Probes of this process in flight: their ids in the store, by circuit and permit. */
  readonly #probes = new WeakMap<CircuitHolder, Map<number, string>>();
  #isApplyingPeers = false;

  constructor(peerBreakers: PeerBreakers, deps: BreakerSyncDeps) {
    this.#peerBreakers = peerBreakers;
    this.#deps = deps;
  }

  /** True while a record of another process is being applied. */
  get isApplyingPeers(): boolean {
    return this.#isApplyingPeers;
  }

  cooled({ name }: HostBreaker, untilUs: number, reason: OpenReason): void {
    if (!this.#isApplyingPeers)
      this.#peerBreakers.cooled(
        hostRecordName(name),
        isOperatorReason(reason) ? "operatorCooldown" : "serverCooldown",
        untilUs,
        reason,
      );
  }

  cooldownEnded({ name }: HostBreaker): void {
    if (!this.#isApplyingPeers) this.#peerBreakers.cooldownEnded(hostRecordName(name));
  }

  hostReset({ name }: HostBreaker): void {
    if (!this.#isApplyingPeers) void this.#peerBreakers.hostReset(hostRecordName(name));
  }

  /** Writes a local transition of a circuit, and returns the probe leases that it ended. */
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

  /** Whether a half-open circuit may be probed. If not, a lease is requested; `probeReply` resolves with the reply. */
  mayProbe(
    holder: CircuitHolder,
    nowUs: number,
  ): true | { readonly untilUs: number; readonly probeReply: Promise<void> | undefined } {
    const permission = this.#permissions.get(holder);
    if (permission?.kind === "granted") return true;
    if (permission?.kind === "refused" && permission.untilUs > nowUs)
      return { untilUs: permission.untilUs, probeReply: undefined };
    const probeReply = permission?.kind === "requested" ? permission.probeReply : this.#requestProbe(holder);
    return { untilUs: nowUs + UNUSED_MS * 1000, probeReply };
  }

  /** The permission is used: a probe is sent with it. */
  probeSent(holder: CircuitHolder, permit: number): void {
    const permission = this.#permissions.get(holder);
    if (permission?.kind !== "granted") return;
    permission.returnTimer.cancel();
    this.#permissions.delete(holder);
    const probes = this.#probes.get(holder) ?? new Map<number, string>();
    probes.set(permit, permission.id);
    this.#probes.set(holder, probes);
  }

  apply({ recordName, host, known }: PeerRecordChange): void {
    this.#isApplyingPeers = true;
    try {
      const hostName = hostOfRecord(recordName);
      const resolver = resolverOfRecord(recordName);
      if (hostName !== undefined) this.#applyHost(hostName, host, known);
      else if (resolver !== undefined) this.#applyCircuit(this.#deps.table.resolver(resolver), "", host, known);
    } finally {
      this.#isApplyingPeers = false;
    }
  }

  /**
   * Writes all open circuits and cooldowns again, because a store that was away has missed them or may have lost them.
   */
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
        else this.#permissions.set(holder, { kind: "granted", id, returnTimer: this.#returnLater(holder, id) });
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
        // Our own record, or nearly the same one of another process: the later deadline counts, without an event.
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
    // `peerProbe` uses negative ids, which no local permit has.
    const probes = circuit.probes.filter(({ id }) => !own.has(id)).map(peerProbe);
    const nowUs = this.#deps.time.monotonicUs();
    const current = holder.at(nowUs);
    // Our own record: the same deadline, converted from the clock of the store.
    if (current.kind === "open" && !circuit.isClosed && Math.abs(current.untilUs - circuit.untilUs) <= SAME_US) return;
    holder.adopt({ ...circuit, probes }, nowUs);
  }
}

/** The longest cooldown by our policy. A stepped clock or another process's policy does not extend it (law B8). */
function longestMs({ policies }: BreakerTable, host: string): number {
  return Math.max(policies.retryAfterCapMs(host), policies.rollingWindow.cooldownMs);
}

export function recordNameOf({ name: { host = "", resolver } }: CircuitHolder): BreakerRecordName {
  return resolver === undefined ? hostRecordName(host) : resolverRecordName(resolver);
}

function circuitName({ name: { role } }: CircuitHolder): string {
  return role ?? "";
}

function peerProbe({ expiresUs }: { readonly expiresUs: number }, index: number): Probe {
  return { id: -1 - index, expiresUs };
}
