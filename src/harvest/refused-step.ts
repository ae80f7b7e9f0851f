import { BreakerOpenError, BusyError, describeConstraint, type OpenReason, type RejectedError } from "../errors.ts";
import type { PipelineTask } from "./pipeline-task.ts";

/** If a quota is spent for longer, its works do not wait in memory: the step is skipped, or the work is put off. */
export const LONG_WAIT_MS = 30_000;
/** The pause between tries while every slot is in use: other users of the hub do not report when they free a slot. */
export const SLOT_PAUSE_MS = 250;

/**
 * What happens to a step that the hub has refused.
 * - `wait-for-slot`: it is tried again when a request ends, at the latest at `untilUs`.
 * - `wait`: its queue waits until `untilUs`.
 * - `circuit-open`: the circuit is open until `untilUs`; the work tries other steps meanwhile.
 * - `quota-spent`: the quota of the queue is spent until `untilUs`; the work tries other steps meanwhile.
 * - `skip`: the work continues without the step.
 */
export type RefusedStep =
  | { readonly kind: "wait-for-slot"; readonly untilUs: number }
  | { readonly kind: "wait"; readonly untilUs: number }
  | { readonly kind: "circuit-open"; readonly untilUs: number; readonly message: string }
  | { readonly kind: "quota-spent"; readonly untilUs: number; readonly message: string }
  | { readonly kind: "skip"; readonly message: string };

/**
 * @param retryMs milliseconds from now after which the step may be tried again, although the time of the refusal is later.
 *   @default not before that time
 */
export function decideRefusedStep(
  task: PipelineTask,
  error: RejectedError,
  { nowUs, wallMs }: { readonly nowUs: number; readonly wallMs: number },
  retryMs = Number.POSITIVE_INFINITY,
): RefusedStep {
  const isTrialRunning = error instanceof BreakerOpenError && error.isTrialRunning;
  if (error instanceof BusyError || isTrialRunning) {
    return { kind: "wait-for-slot", untilUs: nowUs + SLOT_PAUSE_MS * 1000 };
  }
  const waitMs = Math.max(1, error.retryAfterMs ?? SLOT_PAUSE_MS);
  const untilUs = nowUs + waitMs * 1000;
  const isQuota = !(error instanceof BreakerOpenError) || error.reason === "retry-after";
  if (isQuota && waitMs > LONG_WAIT_MS) {
    const message = spentText(error, wallMs + waitMs);
    return isDispensable(task) ? { kind: "skip", message } : { kind: "quota-spent", untilUs, message };
  }
  return error instanceof BreakerOpenError
    ? { kind: "circuit-open", untilUs, message: openText(error) }
    : { kind: "wait", untilUs: Math.min(untilUs, nowUs + retryMs * 1000) };
}

/** Whether other services may know a copy too. */
function isDispensable({ resolution: { work }, pending: { step } }: PipelineTask): boolean {
  if (step.kind !== "ask" || step.resolver.isRepository === true) return false;
  return Object.keys(work.ids).some(name => name !== "url");
}

/** Names the owner of the circuit: a host, or a resolver, which has one circuit for all its hosts. */
function openText({ constraint, reason, lastFailure }: BreakerOpenError): string {
  const known = OPEN_REASONS.get(reason) ?? `opened by an operator: ${reason.slice(reason.indexOf(":") + 1)}`;
  return `${constraint.owner} (${known}${lastFailure === undefined ? "" : `, the last: ${lastFailure}`})`;
}

const OPEN_REASONS: ReadonlyMap<string, string> = new Map<OpenReason, string>([
  ["failures", "consecutive failures"],
  ["retry-after", "the server sent Retry-After"],
  ["rolling-window", "too many failures within the rolling window"],
  ["slow-calls", "too many slow calls within the rolling window"],
]);

function spentText(error: RejectedError, untilWallMs: number): string {
  const { host, constraint } = error;
  const what =
    error instanceof BreakerOpenError
      ? `${host} is in cooldown (its Retry-After)`
      : `${describeConstraint(constraint)} is spent`;
  return `${what}, next slot at ${new Date(untilWallMs).toISOString()}`;
}
