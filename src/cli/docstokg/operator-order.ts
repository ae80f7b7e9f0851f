import { ORDER_SECONDS_MAX } from "../../breaker/order-seconds.ts";
import type { BreakerTarget, OrderRequest } from "../../breaker/orders.ts";
import type { Acknowledgement, GivenOrder } from "../../http/operator.ts";
import { whyNoCircuit } from "../../policy/breaker-target.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { type CommandTarget, resolveTarget } from "./breaker-target.ts";
import { KnownTargets } from "./known-targets.ts";
import type { OperatorConnection } from "./store-connection.ts";

const REASON_CHARS_MAX = 200;
/** How long a command waits for the processes: they are notified at once, so one that needs longer is busy or gone. */
export const ACKNOWLEDGED_WITHIN_MS = 2000;

/** The orders that a command has given, and what they did in the running processes. */
export interface OrderResult {
  readonly given: GivenOrder;
  readonly acknowledgements: readonly Acknowledgement[];
}

/** Gives an order for each target, and waits for the processes. `given` is that of the last target. */
export async function orderAll(
  { operator }: OperatorConnection,
  targets: readonly BreakerTarget[],
  request: OrderRequest,
  { time = systemTime }: Io,
): Promise<OrderResult> {
  const given: GivenOrder[] = [];
  for (const target of targets) given.push(await operator.order(target, request));
  const sequences = given.map(({ sequence }) => sequence);
  const found = await operator.acknowledgements(sequences, time, ACKNOWLEDGED_WITHIN_MS);
  // In shadow mode only an order to open or half-open has no effect: a process there refuses nothing, and keeps holds.
  const isEffective = request.kind !== "open" && request.kind !== "half-open";
  const acknowledgements = found.map(each =>
    isEffective && each.effect === "shadow" ? ({ ...each, effect: "applied" } as const) : each,
  );
  return { given: given.at(-1) as GivenOrder, acknowledgements };
}

/** The policies of the running processes decide first: they know their own ports and services. */
export async function targetOf(text: string, connection: OperatorConnection): Promise<CommandTarget> {
  return resolveIn(text, connection, await policiesOf(connection));
}

/** As `targetOf`, for orders about circuits, cooldowns and holds. */
export async function circuitTargetOf(text: string, connection: OperatorConnection): Promise<CommandTarget> {
  const policies = await policiesOf(connection);
  const found = await resolveIn(text, connection, policies);
  for (const policy of policies) {
    const problem = "unit" in found.target ? whyNoCircuit(policy, found.target.unit) : undefined;
    if (problem !== undefined) throw usageError("<target>", problem);
  }
  return found;
}

async function policiesOf({ operator, policy }: OperatorConnection): Promise<readonly LoadedPolicy[]> {
  const running = await operator.policies();
  return [...running.map(({ policy: own }) => own), policy];
}

async function resolveIn(
  text: string,
  { operator }: OperatorConnection,
  policies: readonly LoadedPolicy[],
): Promise<CommandTarget> {
  const { RESOLVERS } = await import("../../harvest/resolvers/order.ts");
  const [statuses, processes] = await Promise.all([operator.hosts(), operator.processes()]);
  const names = RESOLVERS.map(({ name }) => name);
  return resolveTarget(text, new KnownTargets(policies, statuses, processes, names), policies);
}

export function secondsOf(value: unknown, flag = "--seconds"): number {
  const seconds = typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (seconds > 0 && seconds <= ORDER_SECONDS_MAX) return seconds;
  const expected = `expected seconds, more than 0 and at most ${ORDER_SECONDS_MAX} (one year)`;
  throw usageError(flag, `${JSON.stringify(value)} is not a valid duration; ${expected}`);
}

export function reasonOf(value: unknown): string {
  const reason = String(value).trim();
  if (reason !== "" && reason.length <= REASON_CHARS_MAX && !/\p{Cc}/u.test(reason)) return reason;
  throw usageError("--reason", `expected one line of 1 to ${REASON_CHARS_MAX} characters`);
}
