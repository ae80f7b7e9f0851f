import type { CircuitState } from "../breaker/breaker-events.ts";
import {
  circuitOf,
  cool,
  forgettableUs,
  forgive,
  runningCooldown,
  type SharedHost,
  UNKNOWN_HOST,
} from "../core/breaker/breaker-record.ts";
import { canonicalHost } from "../core/text/host.ts";
import { PROCESS, type ProcessNote } from "../stores/process-record.ts";
import type { NoteSeen, Store } from "../stores/store.ts";
import type { DeskSnapshot } from "./status-publisher.ts";

export interface CircuitReport {
  /** A role; empty for a resolver. */
  readonly name: string;
  readonly state: CircuitState;
  readonly remainingMs: number;
  readonly probes: number;
}

/** A host, or a resolver, as all processes together know it. */
export interface SharedReport {
  readonly kind: "host" | "resolver";
  readonly name: string;
  readonly state: CircuitState;
  /** Why it is open; undefined while it is not. */
  readonly reason: string | undefined;
  /** Until it may be called again, as far as anybody knows. */
  readonly remainingMs: number;
  /** How much of that is a cooldown's, which shuts every role. */
  readonly cooldownMs: number;
  readonly circuits: readonly CircuitReport[];
}

export type RunningProcess = ProcessNote<DeskSnapshot> & { readonly party: string };

/** What an operator does from outside, through the store that running processes share (law S6). */
export class Operator {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async hosts(): Promise<readonly SharedReport[]> {
    const lists = await Promise.all([this.#store.list<SharedHost>("host "), this.#store.list<SharedHost>("resolver ")]);
    return lists.flat().map(({ name, ...seen }) => reportOf(name, seen));
  }

  async host(host: string): Promise<SharedReport> {
    const name = `host ${canonicalHost(host)}`;
    return reportOf(name, await this.#store.read<SharedHost>(name));
  }

  async processes(): Promise<readonly RunningProcess[]> {
    const found = await this.#store.list<ProcessNote<DeskSnapshot>>(PROCESS);
    return found.flatMap(({ name, note }) =>
      note === undefined ? [] : [{ ...note, party: name.slice(PROCESS.length) }],
    );
  }

  /** Shuts a host for all processes. Only time or an operator opens it again. */
  async open(host: string, seconds: number, reason: string): Promise<SharedReport> {
    if (!(seconds > 0)) throw new RangeError(`seconds must be more than 0, not ${seconds}`);
    return this.#change(host, (known, nowUs) =>
      cool(known, "ordered", { untilUs: nowUs + seconds * 1e6, reason: `cli-open:${reason}` }, nowUs),
    );
  }

  /** Opens it again: cooldowns, circuits and failures are forgotten, in every process. */
  async close(host: string): Promise<SharedReport> {
    return this.#change(host, forgive);
  }

  #change(host: string, step: (known: SharedHost, nowUs: number) => SharedHost): Promise<SharedReport> {
    const name = `host ${canonicalHost(host)}`;
    return this.#store.change<SharedHost, SharedReport>(name, ({ note = UNKNOWN_HOST, nowUs }) => {
      const next = step(note, nowUs);
      return {
        note: { next, keepUntilUs: forgettableUs(next, nowUs) },
        result: reportOf(name, { note: next, nowUs }),
      };
    });
  }
}

function reportOf(subject: string, { note: host = UNKNOWN_HOST, nowUs }: NoteSeen<SharedHost>): SharedReport {
  const [kind = "", ...rest] = subject.split(" ");
  const cooldown = runningCooldown(host, nowUs);
  const circuits = Object.keys(host.circuits).map(name => circuitReport(host, name, nowUs));
  const worst = circuits.find(({ state }) => state === "open") ?? circuits.find(({ state }) => state === "half_open");
  const cooledMs = cooldown === undefined ? 0 : Math.ceil((cooldown.untilUs - nowUs) / 1000);
  return {
    kind: kind as SharedReport["kind"],
    name: rest.join(" "),
    state: cooldown === undefined ? (worst?.state ?? "closed") : "open",
    reason: cooldown?.reason ?? (worst === undefined ? undefined : "failures"),
    remainingMs: Math.max(cooledMs, ...circuits.map(({ remainingMs }) => remainingMs)),
    cooldownMs: cooledMs,
    circuits,
  };
}

function circuitReport(host: SharedHost, name: string, nowUs: number): CircuitReport {
  const { isClosed, untilUs, probes } = circuitOf(host, name);
  const leftMs = Math.max(0, Math.ceil((untilUs - nowUs) / 1000));
  const running = probes.filter(({ expiresUs }) => expiresUs > nowUs);
  return {
    name,
    state: isClosed ? "closed" : leftMs > 0 ? "open" : "half_open",
    remainingMs: isClosed ? 0 : leftMs,
    probes: running.length,
  };
}
