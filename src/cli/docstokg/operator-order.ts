import { ORDER_SECONDS_MAX } from "../../breaker/order-seconds.ts";
import {
  type BreakerTarget,
  circuitTarget,
  type OrderRequest,
  type ResolvedTarget,
  type TargetOrder,
} from "../../breaker/orders.ts";
import { parseDurationMs } from "../../core/limits/rate.ts";
import { isOrderReason, REASON_FORM } from "../../core/text/order-reason.ts";
import { ConfigError } from "../../errors.ts";
import type { Acknowledgement, GivenOrder } from "../../http/operator.ts";
import { orderEffects } from "../../http/order-effects.ts";
import { whyNoCircuit } from "../../policy/breaker-target.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { resolveTarget } from "./breaker-target.ts";
import { KnownTargets } from "./known-targets.ts";
import { type OperatorConnection, openOperatorConnection } from "./store-connection.ts";

/**
 * How long a command waits until the processes have applied its order or answered its question. A process that needs
 * longer is busy or gone.
 */
export const ACKNOWLEDGED_WITHIN_MS = 2000;

/**
 * Opens the store, and reads an order from the flags of a command. A ConfigError has the problems of both, those of the
 * store first: without a store no flag has an effect.
 */
export async function openForOrder<Order>(
  flags: Flags,
  io: Io,
  read: () => Order,
): Promise<{ readonly connection: OperatorConnection; readonly order: Order }> {
  const [opened, order] = await Promise.allSettled([openOperatorConnection(flags, io), (async () => read())()]);
  if (opened.status === "fulfilled" && order.status === "fulfilled")
    return { connection: opened.value, order: order.value };
  if (opened.status === "fulfilled") await opened.value[Symbol.asyncDispose]();
  const errors: unknown[] = [opened, order].flatMap(result => (result.status === "rejected" ? [result.reason] : []));
  throw (
    errors.find(error => !(error instanceof ConfigError)) ??
    new ConfigError(errors.flatMap(error => (error as ConfigError).problems))
  );
}

/** The orders that a command has given, and what they did in the running processes. */
export interface OrderResult {
  /** The last of the orders. */
  readonly given: GivenOrder;
  /** Those before it. */
  readonly givenToOthers: readonly GivenOrder[];
  /** When they were stored, by the wall clock: the remaining times of the orders count from then. */
  readonly storedMs: number;
  readonly acknowledgements: readonly Acknowledgement[];
}

/** Gives the orders one after the other, and waits for the processes. */
export async function orderAll(
  { operator }: OperatorConnection,
  orders: readonly TargetOrder[],
  kind: OrderRequest["kind"],
  { time = systemTime }: Io,
): Promise<OrderResult> {
  const given = await operator.orderAll(orders);
  const storedMs = time.wallMs();
  const sequences = given.map(({ sequence }) => sequence);
  const found = await operator.acknowledgements(sequences, time, ACKNOWLEDGED_WITHIN_MS);
  return {
    given: given.at(-1) as GivenOrder,
    givenToOthers: given.slice(0, -1),
    storedMs,
    acknowledgements: orderEffects(kind, found),
  };
}

/**
 * The target that `text` names. The policies of running processes are tried before that of this command, because the port
 * or service may be listed in them alone.
 */
export async function targetOf(text: string, connection: OperatorConnection): Promise<ResolvedTarget> {
  return resolveIn(text, connection, await policiesOf(connection));
}

/** As `targetOf`, for orders about circuits, cooldowns and holds. */
export async function circuitTargetOf(
  text: string,
  connection: OperatorConnection,
): Promise<ResolvedTarget<BreakerTarget>> {
  const policies = await policiesOf(connection);
  const found = await resolveIn(text, connection, policies);
  for (const policy of policies) {
    const problem = "unit" in found.target ? whyNoCircuit(policy, found.target.unit) : undefined;
    if (problem !== undefined) throw usageError("<target>", problem);
  }
  try {
    return { ...found, target: circuitTarget(found.target) };
  } catch (error) {
    throw error instanceof RangeError ? usageError("<target>", error.message) : error;
  }
}

async function policiesOf({ operator, policy }: OperatorConnection): Promise<readonly LoadedPolicy[]> {
  const running = await operator.policies();
  return [...running.map(({ policy: own }) => own), policy];
}

async function resolveIn(
  text: string,
  { operator }: OperatorConnection,
  policies: readonly LoadedPolicy[],
): Promise<ResolvedTarget> {
  const { RESOLVERS } = await import("../../harvest/resolvers/order.ts");
  const [statuses, processes] = await Promise.all([operator.hosts(), operator.processes()]);
  const names = RESOLVERS.map(({ name }) => name);
  return resolveTarget(text, new KnownTargets(policies, statuses, processes, names), policies);
}

/** The form of `--for`, for the help of commands. */
export const DURATION = "such as 90s, 5min, 2h or 1day; a number without a unit is in seconds";

/** The duration of `--for`, in milliseconds. */
export function durationOf(value: unknown): number {
  const ms = typeof value === "string" ? parseDurationMs(value) : undefined;
  if (ms !== undefined && ms > 0 && ms <= ORDER_SECONDS_MAX * 1000) return ms;
  const form = `a duration above 0 and at most ${ORDER_SECONDS_MAX / 86_400}day, ${DURATION}`;
  throw usageError("--for", value === undefined ? `required: ${form}` : `${JSON.stringify(value)} is not ${form}`);
}

export function reasonOf(value: unknown): string {
  if (value === undefined) throw usageError("--reason", `required: ${REASON_FORM}`);
  const reason = String(value).trim();
  if (isOrderReason(reason)) return reason;
  throw usageError("--reason", `expected ${REASON_FORM}`);
}
