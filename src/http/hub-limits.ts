import { basename } from "node:path";
import { operatorReason } from "../breaker/cooldowns.ts";
import { ORDER_SECONDS_MAX, orderMs } from "../breaker/order-seconds.ts";
import type { LimitRequest, ResolvedTarget } from "../breaker/orders.ts";
import { parseRates } from "../core/limits/rate.ts";
import { redactedText } from "../core/text/redaction.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import type { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import { checkWantedLimits, checkWithinPolicy, type LimitTarget, limitTargetsOf } from "../policy/limit-order-check.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { checkOrderOptions } from "./check-options.ts";
import { circuitTargetOf, hubTargetOf } from "./hub-target.ts";

/** Last part of the error message of `hub.limits.set` for looser limits. */
export const SET_FORCE_HINT = "pass force to set it anyway";

/** The options of `hub.limits.hold`. */
export interface HoldOptions {
  /** How long nothing is sent, greater than 0 and at most a year. */
  readonly seconds: number;
  /** Shown in errors, events and tables. @default "operator" */
  readonly reason?: string | undefined;
}

/** The options of `hub.limits.set`. */
export interface SetLimitOptions {
  /** How long the limits apply: greater than 0, at most a year. @default a year: until `reset` */
  readonly seconds?: number | undefined;
  /** Why: shown in waits, refusals, events and tables. @default "operator" */
  readonly reason?: string | undefined;
  /** The operator or program that gives the order: shown beside the reason. @default the program and its process id */
  readonly by?: string | undefined;
  /** The number of requests in flight, counted as `max_concurrent` of the policy is. @default as the policy says */
  readonly maxConcurrent?: number | undefined;
  /**
   * The limits replace those of the policy even if they are looser. Limits that the server announces, and those of other
   * budgets that count the requests, still apply. @default false: they can only tighten the policy
   */
  readonly force?: boolean | undefined;
}

/** The options of `hub.limits.reset`. */
export type ResetLimitOptions = Pick<SetLimitOptions, "reason" | "by">;

/**
 * The rate limits of a hub. A target is a host, `<host>:<role>` for one role, a URL or `service:<name>`; another text is
 * a RangeError. With a shared store, orders apply to all processes, like those of `docstokg limits`; without one, to
 * this hub.
 */
export interface HubLimits {
  /**
   * Sends nothing to the target for a while: its calls wait, or are refused with a RateLimitExceeded if they may not wait
   * that long. A hold also applies in shadow mode. Of two holds, the one that ends later applies.
   */
  hold(target: string, options: HoldOptions): void;
  /** Ends the holds of the target: its calls are sent as the rate limits allow. */
  release(target: string): void;
  /**
   * Changes the limits of the target for a while: of each of its roles, of the one that it names, or of all roles together
   * (`<host>:total`). Each role counts its own requests. Windows keep what they have counted. A new order replaces the
   * earlier one, rates and `maxConcurrent` together. Without `force`, a stricter limit of the policy stays in force; if
   * each of these roles has one, `set` throws a RangeError.
   * @param rates as in the policy: `2/SECOND`, or several windows, `2/SECOND+100/HOUR`; `[]` for `maxConcurrent` alone
   */
  set(target: string, rates: string | readonly string[], options?: SetLimitOptions): void;
  /** Ends orders of `set`: the limits of the policy apply again. Without a role, the order for the total ends too. */
  reset(target: string, options?: ResetLimitOptions): void;
  /**
   * The state of every key (a host or service, and a role) that has been used, is held (`hold`), has changed rates (`set`),
   * or still has usage in its windows.
   */
  list(): readonly KeySnapshot[];
}

/** The implementation of `HubLimits`, whose members are documented there. */
export class GateHubLimits implements HubLimits {
  readonly #gate: Gate;
  readonly #breakers: BreakerRegistry;
  readonly #policy: () => LoadedPolicy;

  constructor(gate: Gate, breakers: BreakerRegistry, policy: () => LoadedPolicy) {
    this.#gate = gate;
    this.#breakers = breakers;
    this.#policy = policy;
  }

  hold(text: string, options: HoldOptions): void {
    checkOrderOptions(options, ["seconds", "reason"], "hub.limits.hold");
    const { seconds, reason = "operator" } = options;
    this.#orderHold(text, { kind: "hold", ms: orderMs(seconds), reason: operatorReason(reason) });
  }

  release(text: string): void {
    this.#orderHold(text, { kind: "release" });
  }

  set(text: string, rates: string | readonly string[], options: SetLimitOptions = {}): void {
    checkOrderOptions(options, ["seconds", "reason", "by", "maxConcurrent", "force"], "hub.limits.set");
    const { seconds = ORDER_SECONDS_MAX, reason = "operator", by = programName(), force: isForced = false } = options;
    const ms = orderMs(seconds);
    const { maxConcurrent } = options;
    const wanted = { rates: rates.length === 0 ? [] : parseRates(rates), maxConcurrent };
    checkWantedLimits(wanted);
    const targets = this.#limitTargets(text);
    if (!isForced) checkWithinPolicy(this.#policy(), targets, wanted, SET_FORCE_HINT);
    const order = { ...wanted, isForced, reason: redactedText(reason), by: redactedText(by) };
    for (const target of targets) this.#order(target, { kind: "set-limit", ms, ...order });
  }

  reset(text: string, options: ResetLimitOptions = {}): void {
    checkOrderOptions(options, ["reason", "by"], "hub.limits.reset");
    const { reason = "operator", by = programName() } = options;
    const order = { kind: "reset-limit", reason: redactedText(reason), by: redactedText(by) } as const;
    for (const target of this.#limitTargets(text)) this.#order(target, order);
  }

  list(): readonly KeySnapshot[] {
    return this.#gate.keySnapshots();
  }

  #orderHold(text: string, order: LimitRequest): void {
    this.#order(limitTarget(circuitTargetOf(this.#policy(), text), text), order);
  }

  #order(target: LimitTarget, order: LimitRequest): void {
    breakersOf(this.#breakers).giveOrder(target, order);
  }

  /** The budgets that count the requests of the target. */
  #limitTargets(text: string): readonly LimitTarget[] {
    return limitTargetsOf(this.#policy(), limitTarget(hubTargetOf(this.#policy(), text), text));
  }
}

function limitTarget({ target }: ResolvedTarget, text: string): LimitTarget {
  if (!("resolver" in target)) return target;
  throw new RangeError(`expected a host, <host>:<role>, a URL or service:<name>, got ${JSON.stringify(text)}`);
}

function programName(): string {
  return `${basename(process.argv[1] ?? "node")}, pid ${process.pid}`;
}
