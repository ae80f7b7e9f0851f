import type { Command } from "commander";
import { operatorReason } from "../../breaker/cooldowns.ts";
import type { SharedBreakerStatus } from "../../breaker/host-status.ts";
import { type CircuitRequest, ordersForAll } from "../../breaker/orders.ts";
import { StoreError } from "../../errors.ts";
import type { Operator } from "../../http/operator.ts";
import { ExitCode } from "../exit-code.ts";
import type { Flags, Io, Subcommand } from "../program.ts";
import { readAll } from "../usage-error.ts";
import { type OrderOutcome, printOutcome } from "./breaker-outcome.ts";
import {
  ACKNOWLEDGED_WITHIN_MS,
  circuitTargetOf,
  DURATION,
  durationOf,
  openForOrder,
  orderAll,
  reasonOf,
} from "./operator-order.ts";
import { addStoreFlag } from "./store-connection.ts";

const TARGET = "a host, <host>:<role>, a URL, service:<name> or resolver:<name>";

export const open: Subcommand = {
  name: "open",
  summary: 'force a circuit open in all processes, until the time is over or "breaker close"',
  configure: command => {
    command
      .argument("<target>", TARGET)
      .option("--for <duration>", `how long the circuit stays open, ${DURATION} (required)`)
      .option("--reason <text>", 'reason, shown in errors and in "breaker show"', "operator")
      .option("--replace", "also replace an order that lasts longer; a Retry-After of the server stays");
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => {
    const isReplacing = flags["replace"] === true;
    const read = () => ({
      kind: "open" as const,
      isReplacing,
      ...readAll({
        ms: () => durationOf(flags["for"]),
        reason: () => operatorReason(reasonOf(flags["reason"])),
      }),
    });
    return giveOrder(target, read, flags, io);
  },
};

export const close: Subcommand = {
  name: "close",
  summary: "close circuits in all processes and clear their failure counts; without a role, also end cooldowns",
  configure: command => {
    command.argument("<target>", TARGET);
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => giveOrder(target, () => ({ kind: "close" }), flags, io),
};

export const halfOpen: Subcommand = {
  name: "half-open",
  summary: "half-open a circuit now: the next calls are trial calls, which decide whether it closes",
  configure: command => {
    command.argument("<target>", TARGET);
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => giveOrder(target, () => ({ kind: "half-open" }), flags, io),
};

function addOrderFlags(command: Command): void {
  command.option("--json", "print JSON");
  addStoreFlag(command);
}

async function giveOrder(text: string, read: () => CircuitRequest, flags: Flags, io: Io): Promise<ExitCode> {
  const { connection: opened, order: request } = await openForOrder(flags, io, read);
  await using connection = opened;
  const resolved = await circuitTargetOf(text, connection);
  const { operator, storeName } = connection;
  const orders = ordersForAll(resolved, request);
  const { given, givenToOthers, storedMs, acknowledgements } = await orderAll(connection, orders, request.kind, io);
  const stillOpen = request.kind === "close" ? await otherOpenResolvers(operator, given.status.name) : [];
  const outcome: OrderOutcome = {
    target: resolved.target,
    others: orders.slice(0, -1).map(({ target }) => target),
    given,
    givenToOthers,
    storedMs,
    acknowledgements,
    stillOpen,
    storeName,
    answerTimeoutMs: ACKNOWLEDGED_WITHIN_MS,
  };
  printOutcome(outcome, flags, io);
  return acknowledgements.every(({ effect }) => effect === "applied") ? ExitCode.ok : ExitCode.partial;
}

/**
 * The other resolvers that are not closed: they may refuse calls. Empty if the store fails, because the order is given
 * already.
 */
export async function otherOpenResolvers(
  operator: Pick<Operator, "hosts">,
  closed: string,
): Promise<readonly SharedBreakerStatus[]> {
  try {
    const found = await operator.hosts();
    return found.filter(({ kind, state, name }) => kind === "resolver" && state !== "closed" && name !== closed);
  } catch (error) {
    if (error instanceof StoreError) return [];
    throw error;
  }
}
