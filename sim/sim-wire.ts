import type { Dispatcher } from "undici";
import type { WireRequest } from "./facts.ts";
import type { CallPlan } from "./plan.ts";
import { breakerUnitOf, keyOf } from "./policy.ts";
import type { SimServer } from "./sim-server.ts";
import { type SimWireDeps, WireExchange } from "./wire-exchange.ts";

/** Carries the call in the dispatch options, which the stages of the hub pass on unchanged. */
export interface SimDispatchOptions extends Dispatcher.DispatchOptions {
  readonly simCall: CallPlan;
}

/** The network of one process: an undici dispatcher without sockets. */
export class SimWire {
  readonly #deps: SimWireDeps;
  /** When each idle connection closes, by host; the newest last. */
  readonly #idle = new Map<string, number[]>();
  readonly #listeners = new Set<() => void>();
  readonly #attempts = new Map<number, number>();

  constructor(deps: SimWireDeps) {
    this.#deps = deps;
  }

  on(name: string, listener: () => void): this {
    if (name === "connect") this.#listeners.add(listener);
    return this;
  }

  off(_name: string, listener: () => void): this {
    this.#listeners.delete(listener);
    return this;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { clock, process, emit, nextId, touch, servers } = this.#deps;
    const { simCall: call } = options as SimDispatchOptions;
    const attempt = (this.#attempts.get(call.id) ?? 0) + 1;
    this.#attempts.set(call.id, attempt);
    const server = servers.get(call.host) as SimServer;
    const counts = call.method !== "HEAD" || server.plan.roleLimits[call.role]?.countsHead === true;
    const { host, role } = call;
    const key = keyOf(server.plan, call);
    const breakerUnit = breakerUnitOf(server.plan, call);
    const units = counts ? call.weight : 0;
    const { credits: plan } = server.plan;
    const credits = counts && plan !== undefined ? (call.credits ?? plan.usual) : 0;
    const usedCredits = counts && plan?.isSettled ? call.usedCredits : credits;
    const request: WireRequest = {
      ...{ id: nextId(), process, call, attempt, host, role, key, breakerUnit, units, credits, usedCredits },
      ...{ dispatchedUs: clock.nowUs, isCold: false },
      ...{ writtenUs: undefined, arrivedUs: undefined, endedUs: undefined },
    };
    touch(request);
    emit({ kind: "dispatched", atUs: clock.nowUs, request });
    const exchange = new WireExchange(
      this.#deps,
      () => this.#releaseConnection(host),
      request,
      server,
      options,
      handler,
    );
    if (this.#takeIdle(host)) exchange.write();
    else exchange.connect(() => this.#connected());
    return true;
  }

  #releaseConnection(host: string): void {
    const { clock, plan } = this.#deps;
    const idle = this.#idle.get(host) ?? [];
    idle.push(clock.nowUs + plan.network.keepAliveMs * 1000);
    this.#idle.set(host, idle);
  }

  #takeIdle(host: string): boolean {
    const until = this.#idle.get(host)?.pop();
    if (until === undefined) return false;
    if (until > this.#deps.clock.nowUs) return true;
    this.#idle.delete(host);
    return false;
  }

  #connected(): void {
    for (const listener of this.#listeners) listener();
  }
}
