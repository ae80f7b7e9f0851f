import type { LimitRequest } from "../breaker/orders.ts";
import {
  checkWantedLimits,
  checkWithinPolicy,
  isShadowTarget,
  type LimitTarget,
  type LooserRole,
  limitTargetsOf,
  looserRoles,
  type StricterRole,
} from "../policy/limit-order-check.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { Time } from "../time/time.ts";
import type { Acknowledgement, Operator } from "./operator.ts";

/** An order to change limits, or to end such a change. */
export type RateRequest = LimitRequest & { readonly kind: "set-limit" | "reset-limit" };

export interface LimitCommandOptions {
  /** The policy of the command: used if no running process has published its own. */
  readonly policy: LoadedPolicy;
  readonly time: Time;
  /** How long to wait until the processes have applied the order. */
  readonly timeoutMs: number;
  /** Last part of the error message for looser limits: how to set them anyway. */
  readonly hint: string;
}

/** An order that was given to the processes of a store. */
export interface GivenLimit {
  /** The budgets that it is for: those of the host, or of its service. */
  readonly targets: readonly LimitTarget[];
  /** Roles whose policy is stricter than an ordered limit: the order has no effect on them. */
  readonly kept: readonly StricterRole[];
  /** Roles in which a forced order allows more than their policy. */
  readonly looser: readonly LooserRole[];
  /** Milliseconds until it ends; 0 for a reset. */
  readonly remainingMs: number;
  /** When it was stored, by the wall clock: `remainingMs` counts from then. */
  readonly storedMs: number;
  readonly acknowledgements: readonly Acknowledgement[];
}

/**
 * Changes the limits of a host or service in all processes that share a store, and waits for them. Rejects with a
 * RangeError, and writes nothing, if the limits are not forced and the policy is stricter in every role.
 */
export async function giveLimitOrder(
  operator: Operator,
  target: LimitTarget,
  request: RateRequest,
  { policy, time, timeoutMs, hint }: LimitCommandOptions,
): Promise<GivenLimit> {
  const running = await operator.policies();
  const policyInUse = running[0]?.policy ?? policy;
  const targets = limitTargetsOf(policyInUse, target);
  const isSet = request.kind === "set-limit";
  if (isSet) checkWantedLimits(request);
  const kept = isSet && !request.isForced ? checkWithinPolicy(policyInUse, targets, request, hint) : [];
  const looser = isSet && request.isForced ? looserRoles(policyInUse, targets, request) : [];
  const given = await operator.orderAll(targets.map(target => ({ target, request })));
  const storedMs = time.wallMs();
  const remainingMs = given.at(-1)?.remainingMs ?? 0;
  const sequences = given.map(({ sequence }) => sequence);
  const found = await operator.acknowledgements(sequences, time, timeoutMs);
  const policies = new Map(
    running.flatMap(({ policy: own, processes }) => processes.map(each => [each.processId, own])),
  );
  // Acknowledgements report shadow mode of circuits. For this order the shadow mode of the limits counts; the end of an
  // order applies there too.
  const acknowledgements = found.map(({ process, effect }) => {
    const isShadow = isSet && effect !== "silent" && isShadowTarget(policies.get(process.processId) ?? policy, targets);
    return { process, effect: effect === "silent" ? effect : isShadow ? ("shadow" as const) : ("applied" as const) };
  });
  return { targets, kept, looser, remainingMs, storedMs, acknowledgements };
}
