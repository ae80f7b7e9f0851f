import { type BreakerRecord, circuitRecordOf } from "../core/breaker/breaker-record.ts";
import type { Probe } from "../core/breaker/circuit.ts";
import type { OpenReason } from "../errors.ts";
import { isRole } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { CooldownStarter } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** Deadlines that differ by less than this are the same one, converted between two clocks. */
const SAME_US = 50_000;

/** The host or the resolver of a record, the record, and what this process knew of it before. */
export interface PeerRecord {
  readonly host?: string | undefined;
  readonly resolver?: string | undefined;
  readonly record: BreakerRecord;
  readonly known: BreakerRecord;
}

export interface RecordApplierDeps {
  readonly table: BreakerTable;
  readonly time: Time;
  readonly cooldownStarter: CooldownStarter;
  /** The number of the permit that was issued last. */
  readonly lastPermit: () => number;
  readonly endCooldown: (host: HostBreaker) => void;
  /** Resets a host or service, if it is known, and its partitions. */
  readonly reset: (name: string) => void;
}

/** Applies a record of the peers to the hosts and circuits of this process. What it knew already changes nothing. */
export class RecordApplier {
  readonly #deps: RecordApplierDeps;

  constructor(deps: RecordApplierDeps) {
    this.#deps = deps;
  }

  apply({ host, resolver, record, known }: PeerRecord): void {
    if (host !== undefined) this.#applyHost(host, record, known);
    else if (resolver !== undefined) this.#applyCircuit(this.#deps.table.resolver(resolver), "", record, known);
  }

  #applyHost(name: string, record: BreakerRecord, known: BreakerRecord): void {
    const { table, reset } = this.#deps;
    const local = table.find(name);
    if (record.epoch !== known.epoch) reset(name);
    for (const part of ["serverCooldown", "operatorCooldown"] as const)
      if (record[part].serial !== known[part].serial) this.#applyCooldown(name, part, record);
    for (const role of Object.keys(record.circuits)) {
      if (!isRole(role) || (local?.circuits[role] === undefined && circuitRecordOf(record, role).isClosed)) continue;
      this.#applyCircuit(table.circuit(table.host(name), role), role, record, known);
    }
  }

  #applyCooldown(name: string, part: "serverCooldown" | "operatorCooldown", record: BreakerRecord): void {
    const { table, time, cooldownStarter, lastPermit, endCooldown } = this.#deps;
    const { untilUs, reason } = record[part];
    const nowUs = time.monotonicUs();
    const local = table.find(name);
    const current = local?.cooldownAt(nowUs);
    if (local !== undefined && current?.reason === reason && current.untilUs >= untilUs - SAME_US) {
      // Our own record, or nearly the same one of another process: the later deadline counts, without an event.
      if (untilUs > current.untilUs) local.cooldowns.set({ ...current, untilUs });
    } else if (untilUs > nowUs) {
      const ms = Math.min((untilUs - nowUs) / 1000, part === "serverCooldown" ? longestMs(table, name) : Infinity);
      cooldownStarter.start(table.host(name), ms, reason as OpenReason, lastPermit(), "peer");
    } else if (part === "serverCooldown" && local?.mayHaveCooldown && local.cooldowns.endRequested(nowUs)) {
      endCooldown(local);
    }
  }

  #applyCircuit(holder: CircuitHolder, name: string, record: BreakerRecord, known: BreakerRecord): void {
    const circuit = circuitRecordOf(record, name);
    if (circuit.serial === circuitRecordOf(known, name).serial) return;
    const nowUs = this.#deps.time.monotonicUs();
    const current = holder.at(nowUs);
    // Our own record: the same deadline, converted from the clock of the store.
    if (current.kind === "open" && !circuit.isClosed && Math.abs(current.untilUs - circuit.untilUs) <= SAME_US) return;
    holder.adopt({ ...circuit, probes: circuit.probes.map(peerProbe) }, nowUs);
  }
}

/** The longest cooldown by our policy. A stepped clock or another process's policy does not extend it (law B8). */
function longestMs({ policies }: BreakerTable, host: string): number {
  return Math.max(policies.retryAfterCapMs(host), policies.rollingWindow.cooldownMs);
}

/** Probes of peers have negative ids, which no local permit has. */
function peerProbe({ expiresUs }: { readonly expiresUs: number }, index: number): Probe {
  return { id: -1 - index, expiresUs };
}
