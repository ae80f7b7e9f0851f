/** Several processes that share a memory store on virtual time. Each can be separated from the store. */

import { BreakerOpenError, StoreError } from "../../src/errors.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import { Gate } from "../../src/gate/gate.ts";
import { Operator } from "../../src/http/operator.ts";
import type { EntryRequest } from "../../src/limiter/entry-request.ts";
import type { BreakersOptions } from "../../src/policy/breaker-schema.ts";
import { limitPoliciesFrom } from "../../src/policy/limits.ts";
import { MemoryStore } from "../../src/stores/memory/memory-store.ts";
import type { Store } from "../../src/stores/store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";

export const HOST = "a.example";
export const CIRCUIT = { fail_max: 2, reset_timeout_s: 60 };
const LIMITS = { rates: "1000/SECOND", max_delay_ms: 0 };
export const BREAKERS: BreakersOptions = {
  defaults: {
    ...CIRCUIT,
    roles: { metadata: CIRCUIT, landing: CIRCUIT, artifact: CIRCUIT },
    half_open: { jitter_ms: 0 },
  },
  advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
};

/** Longer than a process trusts what it has read. */
export const REREAD_MS = 1100;

export class FleetProcess {
  readonly breakers: BreakerRegistry;
  readonly gate: Gate;
  readonly time: FakeTime;
  isAway = false;
  /** How long a change of a record takes to the store, and its reply back. */
  changeMs = 0;

  constructor(store: Store, time: FakeTime, breakers: BreakersOptions) {
    this.time = time;
    this.breakers = new BreakerRegistry(breakers, { time, random: () => 0 });
    const limits = limitPoliciesFrom({ defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } }, "test");
    this.gate = new Gate(limits, time, {
      breakers: this.breakers,
      breakerStore: this.#separable(store),
      random: () => 0.5,
    });
  }

  /** Sends one request. Returns the reason of the refusal, or undefined if the request was sent. */
  async send(
    result: "success" | "failure" | "unreached" | "throttle" | "neutral" | { readonly retryAfterMs: number },
    call: Partial<EntryRequest> = {},
  ): Promise<string | undefined> {
    try {
      const grant = await this.gate.enter({ host: HOST, role: "metadata", ...call });
      grant.written();
      if (result === "success") grant.report({ outcome: { kind: "success" }, status: 200 });
      else if (result === "neutral") grant.report({ outcome: { kind: "neutral" }, status: 404 });
      else if (result === "unreached") {
        grant.report({ outcome: { kind: "failure", cause: "network", throttled: false, unreached: true } });
      } else {
        const retryAfterMs = typeof result === "string" ? undefined : result.retryAfterMs;
        const throttled = result === "throttle" || retryAfterMs !== undefined;
        grant.report({ outcome: { kind: "failure", cause: "status", throttled }, status: 503, retryAfterMs });
      }
      grant.release();
      return undefined;
    } catch (error) {
      if (error instanceof BreakerOpenError) return error.reason;
      throw error;
    }
  }

  async sendAll(count: number, ...args: Parameters<FleetProcess["send"]>): Promise<void> {
    for (let n = 0; n < count; n += 1) await this.send(...args);
  }

  #separable(store: Store): Store {
    const away = () => Promise.reject(new StoreError("no connection"));
    const isAway = () => this.isAway;
    return {
      processId: store.processId,
      processes: 2,
      exchange: (...about) => (isAway() ? away() : store.exchange(...about)),
      read: name => (isAway() ? away() : store.read(name)),
      change: async (name, step) => {
        const { changeMs } = this;
        if (changeMs > 0) await this.time.sleep(changeMs);
        if (isAway()) return away();
        const result = await store.change(name, step);
        if (changeMs > 0) await this.time.sleep(changeMs);
        return result;
      },
      list: prefix => (isAway() ? away() : store.list(prefix)),
      signals: store.signals,
      close: () => store.close(),
    };
  }
}

export function fleetOf(count: number, breakers: BreakersOptions = BREAKERS) {
  const time = new FakeTime();
  const shared = new MemoryStore(time);
  const processes = Array.from(
    { length: count },
    (_, index) => new FleetProcess(shared.member(`p${index}`), time, breakers),
  );
  const operator = new Operator(shared.member("operator"));
  const [a, b] = processes;
  if (a === undefined || b === undefined) throw new Error("a fleet has at least two processes");
  return { time, processes, a, b, operator, shared };
}
