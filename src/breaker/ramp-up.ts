import type { Probe } from "../core/breaker/circuit.ts";
import {
  advanceRamp,
  answerRamp,
  beginRamp,
  enterRamp,
  failRamp,
  leaveRamp,
  type Ramp,
  type RampPolicy,
  rampAdmits,
} from "../core/breaker/ramp.ts";
import type { OpenReason } from "../errors.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import type { BreakerChange } from "./breaker-change.ts";
import type { CircuitName } from "./breaker-events.ts";
import type { BreakerTable } from "./breaker-table.ts";
import { isOperatorReason } from "./cooldowns.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { IssuedCall } from "./permit.ts";

/** For hosts and calls without a ramp-up. */
export const NO_RAMP_UPS: readonly RampUp[] = [];

/** How the traffic of one role of a host or service resumes after a cooldown (law B12). */
export class RampUp {
  readonly name: CircuitName & { readonly host: string };
  /** Why the host was in cooldown. */
  reason: OpenReason = "failures";
  /** Whether an operator has ordered this cooldown, or an earlier one whose ramp-up was not over when this one started. */
  isOrdered = false;
  /** When its cooldown started, in monotonic microseconds. */
  startedUs = 0;
  #policy: RampPolicy = { trialCalls: 1, maxCalls: 1 };
  #ramp: Ramp | undefined;

  constructor(host: string, role: Role) {
    this.name = { host, role };
  }

  /** A cooldown has started: after it, traffic resumes with the first few calls. */
  start(reason: OpenReason, policy: RampPolicy, nowUs: number): void {
    this.isOrdered = isOperatorReason(reason) || (this.isOrdered && !this.isOver);
    this.reason = reason;
    this.startedUs = nowUs;
    this.#policy = policy;
    this.#ramp = beginRamp(policy);
  }

  end(): void {
    this.#ramp = undefined;
  }

  /** True when the number of calls is no longer limited. */
  get isOver(): boolean {
    return this.#ramp === undefined;
  }

  /** Calls that may wait for an answer at the same time; Infinity when it is over. */
  get limit(): number {
    return this.#ramp?.limit ?? Number.POSITIVE_INFINITY;
  }

  /** True while only trial calls are admitted. They wait for a random time, the jitter. */
  get isTrial(): boolean {
    return this.#ramp !== undefined && this.#ramp.limit <= this.#policy.trialCalls;
  }

  admits(nowUs: number): boolean {
    const ramp = this.#at(nowUs);
    return ramp === undefined || rampAdmits(ramp);
  }

  /** The calls that wait for an answer. */
  calls(nowUs: number): readonly Probe[] {
    return this.#at(nowUs)?.calls ?? [];
  }

  enter(call: Probe): void {
    if (this.#ramp !== undefined) this.#ramp = enterRamp(this.#ramp, call);
  }

  /**
   * The server has answered a call. Returns true if the ramp-up has changed, so that it may admit another call.
   * @param id the number of the permit; 0 for an answer that was reported without one, which counts for the call that has
   *   waited longest
   */
  answer(id: number): boolean {
    return this.#step(id, (ramp, call) => answerRamp(ramp, this.#policy, call));
  }

  /** As `answer`, for a call that has failed. */
  fail(id: number): boolean {
    return this.#step(id, (ramp, call) => failRamp(ramp, this.#policy, call));
  }

  /** As `answer`, for a call that has ended without a result. */
  leave(id: number): boolean {
    return this.#step(id, leaveRamp);
  }

  #step(id: number, next: (ramp: Ramp, id: number) => Ramp | undefined): boolean {
    if (this.#ramp === undefined) return false;
    const old = this.#ramp;
    this.#ramp = next(old, id > 0 ? id : (old.calls[0]?.id ?? 0));
    return this.#ramp !== old;
  }

  #at(nowUs: number): Ramp | undefined {
    if (this.#ramp !== undefined) this.#ramp = advanceRamp(this.#ramp, nowUs);
    return this.#ramp;
  }
}

/** The ramp-ups of all hosts and services of a process (law B12), and their changes for the gate. */
export class RampUps {
  readonly #table: BreakerTable;
  readonly #time: Time;
  readonly #record: (change: BreakerChange) => void;

  constructor(table: BreakerTable, time: Time, record: (change: BreakerChange) => void) {
    this.#table = table;
    this.#time = time;
    this.#record = record;
  }

  /** A cooldown of a host has started: after it, these roles resume with their trial calls. */
  start(host: HostBreaker, reason: OpenReason, roles: readonly Role[] = ROLES): void {
    for (const role of roles) {
      const rampUp = host.createRampUp(role);
      rampUp.start(reason, this.#table.policies.rampUp(role), this.#time.monotonicUs());
      this.#changed(rampUp);
    }
  }

  /**
   * All traffic of the host, or of one role, flows again.
   * @param orderedUs when this was ordered; the ramp-up of a cooldown that started later goes on. @default now
   */
  end(host: HostBreaker, role?: Role, orderedUs = Number.POSITIVE_INFINITY): void {
    for (const rampUp of host.rampUps()) {
      if ((role !== undefined && rampUp.name.role !== role) || rampUp.startedUs > orderedUs) continue;
      rampUp.end();
      this.#changed(rampUp);
    }
  }

  answered({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.answer(number)) this.#changed(rampUp);
  }

  failed({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.fail(number)) this.#changed(rampUp);
  }

  left({ rampUps, number }: IssuedCall): void {
    for (const rampUp of rampUps) if (rampUp.leave(number)) this.#changed(rampUp);
  }

  #changed(blocker: RampUp): void {
    this.#record({ kind: "ramp-up", origin: "local", blocker });
  }
}
