import type { Command } from "commander";
import { operatorReason } from "../../breaker/cooldowns.ts";
import type { BreakerTarget, OrderRequest, ResolvedTarget } from "../../breaker/orders.ts";
import { StoreError } from "../../errors.ts";
import type { RecordedHold } from "../../http/observer.ts";
import type { Operator } from "../../http/operator.ts";
import type { LimitTarget } from "../../policy/limit-order-check.ts";
import { isRole, type Role } from "../../policy/roles.ts";
import { ExitCode } from "../exit-code.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { printable } from "../output/printable.ts";
import type { Flags, Io, Subcommand } from "../program.ts";
import { readAll, usageError } from "../usage-error.ts";
import { effectLines, effectRows } from "./breaker-outcome.ts";
import { targetArgument, targetName } from "./breaker-target.ts";
import {
  ACKNOWLEDGED_WITHIN_MS,
  circuitTargetOf,
  DURATION,
  durationOf,
  type OrderResult,
  openForOrder,
  orderAll,
  reasonOf,
} from "./operator-order.ts";
import { addStoreFlag } from "./store-connection.ts";

export const LIMIT_TARGET = "a host, <host>:<role>, a URL or service:<name>";

export const hold: Subcommand = {
  name: "hold",
  summary: 'send nothing to a host or service in all processes, until the time is over or "limits release"',
  configure: command => {
    command
      .argument("<target>", LIMIT_TARGET)
      .option("--for <duration>", `how long nothing is sent, ${DURATION}; of two holds the later end counts (required)`)
      .option("--reason <text>", 'reason, shown in errors and in "limits show"', "operator");
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => {
    const read = () => ({
      kind: "hold" as const,
      ...readAll({
        ms: () => durationOf(flags["for"]),
        reason: () => operatorReason(reasonOf(flags["reason"])),
      }),
    });
    return sendOrder(target, read, flags, io);
  },
};

export const release: Subcommand = {
  name: "release",
  summary: "end the holds of a host or service in all processes",
  configure: command => {
    command.argument("<target>", LIMIT_TARGET);
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => sendOrder(target, () => ({ kind: "release" }), flags, io),
};

export function addOrderFlags(command: Command): void {
  command.option("--json", "print JSON");
  addStoreFlag(command);
}

async function sendOrder(text: string, read: () => OrderRequest, flags: Flags, io: Io): Promise<ExitCode> {
  const { connection: opened, order: request } = await openForOrder(flags, io, read);
  await using connection = opened;
  const { target, others } = await circuitTargetOf(text, connection);
  limitTargetOf({ target });
  const result = await orderAll(connection, [{ target, request }], request.kind, io);
  const roles = result.given.roles.map(({ role }) => role).filter(isRole);
  const stillHeld = request.kind === "release" ? await otherHolds(connection.operator, others, roles) : [];
  if (flags["json"]) io.stdout.write(`${JSON.stringify(jsonOf(target, result, stillHeld))}\n`);
  else io.stdout.write(`${orderLines(target, result, stillHeld, connection.storeName).map(printable).join("\n")}\n`);
  return result.acknowledgements.every(({ effect }) => effect === "applied") ? ExitCode.ok : ExitCode.partial;
}

interface RemainingHold extends RecordedHold {
  readonly role: Role;
}

/**
 * The holds of the other hosts and services that decide about the same calls. Empty if the store fails, because the order
 * is given already.
 */
async function otherHolds(
  operator: Pick<Operator, "hold">,
  units: readonly string[],
  roles: readonly Role[],
): Promise<readonly RemainingHold[]> {
  try {
    const found = await Promise.all(
      units.flatMap(unit => roles.map(async role => ({ role, held: await operator.hold([unit], role) }))),
    );
    return found.flatMap(({ role, held }) => (held === undefined ? [] : [{ role, ...held }]));
  } catch (error) {
    if (error instanceof StoreError) return [];
    throw error;
  }
}

/** A resolver has no rate limits. */
export function limitTargetOf({ target }: Pick<ResolvedTarget, "target">): LimitTarget {
  if ("resolver" in target)
    throw usageError("<target>", `resolver ${target.resolver} has no rate limits; expected ${LIMIT_TARGET}`);
  return target;
}

function jsonOf(
  target: BreakerTarget,
  { given, storedMs, acknowledgements }: OrderResult,
  stillHeld: readonly RemainingHold[],
) {
  const heldUntil = (ms: number) => (ms > 0 ? new Date(storedMs + ms).toISOString() : null);
  return {
    target: targetName(target),
    role: "role" in target ? (target.role ?? null) : null,
    heldUntil: heldUntil(given.remainingMs),
    roles: given.roles.map(({ role, remainingMs }) => ({ role, heldUntil: heldUntil(remainingMs) })),
    changed: given.isChanged,
    ...effectRows(acknowledgements),
    stillHeld: stillHeld.map(({ unit, role, remainingMs, reason }) => ({
      ...{ target: unit, role, heldUntil: heldUntil(remainingMs), reason },
    })),
  };
}

function orderLines(
  target: BreakerTarget,
  { given, storedMs, acknowledgements }: OrderResult,
  stillHeld: readonly RemainingHold[],
  storeName: string,
): readonly string[] {
  const stateOf = (ms: number) => (ms > 0 ? `held until ${formatUtc(storedMs + ms)} (${formatWait(ms)})` : "released");
  const byEnd = Map.groupBy(given.roles, ({ remainingMs }) => remainingMs);
  // An earlier hold of some of the roles may end later than this one.
  const states = Array.from(byEnd, ([ms, ofRoles]) =>
    byEnd.size === 1 ? stateOf(ms) : `${ofRoles.map(({ role }) => role).join(", ")} ${stateOf(ms)}`,
  );
  const unchanged = given.isChanged
    ? []
    : ['Nothing was changed: it is held for longer already. "limits release" ends that hold.'];
  return [
    `${targetName(target)}: ${states.join("; ")}`,
    ...unchanged,
    ...effectLines({ acknowledgements, storeName, answerTimeoutMs: ACKNOWLEDGED_WITHIN_MS }),
    ...Array.from(
      Map.groupBy(stillHeld, ({ unit }) => unit),
      ([unit, ofUnit]) => {
        const ms = Math.max(...ofUnit.map(({ remainingMs }) => remainingMs));
        const ofRoles = ofUnit.map(({ role }) => role).join(", ");
        const until = `until ${formatUtc(storedMs + ms)} (${formatWait(ms)})`;
        return `Still held: ${unit} (${ofRoles}) ${until}. To release it: docstokg limits release ${targetArgument("host", unit)}`;
      },
    ),
  ];
}
