import { wallDeadlineMs } from "../core/breaker/circuit.ts";
import type { Time } from "../time/time.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { Cooldown } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";

/**
 * Emits the events about the cooldowns of hosts. A host may have two, an operator's order and one from responses; the
 * listeners know one for each host. So the last event is always about the cooldown that ends last.
 */
export class CooldownEvents {
  readonly #emitter: BreakerEmitter;
  readonly #time: Time;

  constructor(emitter: BreakerEmitter, time: Time) {
    this.#emitter = emitter;
    this.#time = time;
  }

  /** The cooldown was set. */
  began(host: HostBreaker, cooldown: Cooldown): void {
    this.#set(host, cooldown);
    const last = host.cooldownAt(this.#time.monotonicUs());
    if (last !== undefined && last.untilUs > cooldown.untilUs) this.#set(host, last);
  }

  /** A cooldown was ended. If the other one is still running, the host is not free yet. */
  ended(host: HostBreaker, by: "success" | "operator"): void {
    const left = host.cooldownAt(this.#time.monotonicUs());
    if (left === undefined) this.#emitter.cooldownEnded(host.name, by);
    else this.#set(host, left);
  }

  #set(host: HostBreaker, { untilUs, reason, origin }: Cooldown): void {
    const clocks = { monotonicUs: this.#time.monotonicUs(), wallMs: this.#time.wallMs() };
    this.#emitter.cooldownSet(host.name, wallDeadlineMs(untilUs, clocks), reason, origin === "peer");
  }
}
