import { breakerReasonText } from "../../breaker/breaker-reason.ts";
import { type SharedBreakerStatus, worseStatus } from "../../breaker/host-status.ts";
import type { BreakerTarget } from "../../breaker/orders.ts";
import type { Acknowledgement, GivenOrder } from "../../http/operator.ts";
import { painter } from "../output/colour.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { printable } from "../output/printable.ts";
import type { Flags, Io } from "../program.ts";
import { targetArgument, targetName } from "./breaker-target.ts";
import { STATE_COLOURS } from "./state-colours.ts";

/** The result of an operator's order. */
export interface OrderOutcome {
  readonly target: BreakerTarget;
  /** Other hosts and services that got the same order, because their circuits decide about the same requests. */
  readonly others: readonly BreakerTarget[];
  readonly given: GivenOrder;
  /** Their orders. */
  readonly givenToOthers: readonly GivenOrder[];
  /** When the orders were stored, by the wall clock: their remaining times count from then. */
  readonly storedMs: number;
  readonly acknowledgements: readonly Acknowledgement[];
  /** Resolvers whose circuit may still refuse the requests. */
  readonly stillOpen: readonly SharedBreakerStatus[];
  readonly storeName: string;
  /** How long the command waits for the answers of the processes. */
  readonly answerTimeoutMs: number;
}

type TargetState = Pick<SharedBreakerStatus, "state" | "reason" | "remainingMs">;

export function printOutcome(outcome: OrderOutcome, flags: Flags, io: Io): void {
  if (flags["json"]) io.stdout.write(`${JSON.stringify(jsonOf(outcome))}\n`);
  else io.stdout.write(`${outcomeLines(outcome, io).join("\n")}\n`);
}

function jsonOf(outcome: OrderOutcome) {
  const { target, others, given, storedMs, acknowledgements, stillOpen } = outcome;
  const { name, kind } = given.status;
  const { state, reason = null, remainingMs } = stateOf(outcome);
  return {
    target: targetName(target),
    kind,
    host: name,
    role: "role" in target ? (target.role ?? null) : null,
    state,
    reason,
    openUntil: remainingMs > 0 ? new Date(storedMs + remainingMs).toISOString() : null,
    remainingMs,
    changed: given.isChanged,
    alsoChanged: others.map(targetName),
    ...effectRows(acknowledgements),
    stillOpen: stillOpen.map(status => targetArgument(status.kind, status.name)),
  };
}

function outcomeLines(outcome: OrderOutcome, io: Io): readonly string[] {
  const { target, others, given, givenToOthers, storedMs, stillOpen } = outcome;
  const { state, reason = "", remainingMs } = stateOf(outcome);
  const until =
    remainingMs > 0
      ? ` until ${formatUtc(storedMs + remainingMs)} (${formatWait(remainingMs)}), ${printable(breakerReasonText(reason))}`
      : "";
  const text = [`circuit of ${targetName(target)}: ${painter(io)(STATE_COLOURS[state], state)}${until}`];
  if (!given.isChanged)
    text.push("Nothing was changed: the circuit is open for longer already. --replace sets the shorter time.");
  text.push(...effectLines(outcome).map(printable));
  if (others.length > 0) text.push(`Changed too: ${others.map(targetName).join(", ")}.`);
  for (const { status } of [given, ...givenToOthers]) text.push(...cooldownLines(target, status).map(printable));
  for (const { kind, name, state: other } of stillOpen)
    text.push(`Still ${other}: ${kind} ${name}. To close it: docstokg breaker close ${targetArgument(kind, name)}`);
  return text;
}

/** The effect of an order in each process, for JSON. */
export function effectRows(acknowledgements: readonly Acknowledgement[]) {
  return {
    applied: acknowledgements.filter(({ effect }) => effect === "applied").length,
    processes: acknowledgements.map(({ process: { pid, program, machine }, effect }) => ({
      pid,
      program,
      machine,
      effect,
    })),
  };
}

/** How many processes have applied the order, and which have not. */
export function effectLines({
  acknowledgements,
  storeName,
  answerTimeoutMs,
}: Pick<OrderOutcome, "acknowledgements" | "storeName" | "answerTimeoutMs">): readonly string[] {
  if (acknowledgements.length === 0)
    return [
      `No running process is listed in ${storeName}. A process applies the order before its next request; the order is kept for at least a day.`,
    ];
  const named = (effect: Acknowledgement["effect"]) =>
    acknowledgements
      .filter(acknowledgement => acknowledgement.effect === effect)
      .map(({ process: { pid, program, machine } }) => `${pid} ${program} on ${machine}`)
      .join(", ");
  const applied = acknowledgements.filter(({ effect }) => effect === "applied").length;
  const total = acknowledgements.length;
  const text = [`applied by ${applied} of ${total} ${total === 1 ? "process" : "processes"}`];
  const [shadow, silent] = [named("shadow"), named("silent")];
  if (shadow !== "") text.push(`in shadow mode, where it has no effect: ${shadow}`);
  if (silent !== "")
    text.push(
      `no answer within ${formatWait(answerTimeoutMs)}: ${silent}. A running process applies it before its next request.`,
    );
  return text;
}

/** While a host is in cooldown, calls of a role are refused although the circuit of the role is closed. */
function cooldownLines(
  target: BreakerTarget,
  { name, cooldownMs, cooldownReason = "" }: SharedBreakerStatus,
): readonly string[] {
  if (!("role" in target) || target.role === undefined || cooldownMs === 0) return [];
  return [
    `All roles of ${name} are refused for another ${formatWait(cooldownMs)}: ${breakerReasonText(cooldownReason)}.` +
      ` To end that: docstokg breaker close ${targetArgument("host", name)}`,
  ];
}

/**
 * The worst state among the target and the others that got the order. For an order for one role it is that of the
 * circuits of the role, otherwise that of circuits and cooldowns.
 */
function stateOf({ target, given, givenToOthers }: OrderOutcome): TargetState {
  const role = "role" in target ? target.role : undefined;
  const states = [given, ...givenToOthers].flatMap(({ status }): readonly TargetState[] =>
    role === undefined ? [status] : status.circuits.filter(({ name }) => name === role),
  );
  return states.reduce<TargetState>(worseStatus, { state: "closed", reason: undefined, remainingMs: 0 });
}
