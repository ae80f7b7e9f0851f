import type { Command } from "commander";
import { operatorReason } from "../../breaker/cooldowns.ts";
import type { OrderRequest } from "../../breaker/orders.ts";
import type { GivenOrder } from "../../http/operator.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import type { Flags, Io, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { type OrderOutcome, printOutcome } from "./breaker-outcome.ts";
import { type CommandTarget, resolveTarget } from "./breaker-target.ts";
import { KnownTargets } from "./known-targets.ts";
import { addStoreFlag, type OperatorConnection, openOperatorConnection } from "./store-connection.ts";

const SECONDS_MAX = 366 * 86_400;
const REASON_CHARS_MAX = 200;
/** How long a command waits for the processes: they are notified at once, so one that needs longer is busy or gone. */
const ACKNOWLEDGED_WITHIN_MS = 2000;

const TARGET = "a host, <host>:<role>, a URL, service:<name> or resolver:<name>";

export const open: Subcommand = {
  name: "open",
  summary: 'force a circuit open in all processes, until the time is over or "breaker close"',
  configure: command => {
    command
      .argument("<target>", TARGET)
      .requiredOption("--seconds <number>", "how long the circuit stays open")
      .option("--reason <text>", 'reason, shown in errors and in "breaker show"', "operator")
      .option("--replace", "also replace an order that lasts longer; a Retry-After of the server stays");
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => {
    const ms = secondsOf(flags["seconds"]) * 1000;
    const reason = operatorReason(reasonOf(flags["reason"]));
    const isReplacing = flags["replace"] === true;
    return giveOrder(target, { kind: "open", ms, reason, isReplacing }, flags, io);
  },
};

export const close: Subcommand = {
  name: "close",
  summary: "close circuits in all processes; cooldowns and failure counts are cleared",
  configure: command => {
    command.argument("<target>", TARGET);
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => giveOrder(target, { kind: "close" }, flags, io),
};

export const halfOpen: Subcommand = {
  name: "half-open",
  summary: "end an open circuit now: the next calls are trial calls, which decide whether it closes",
  configure: command => {
    command.argument("<target>", TARGET);
    addOrderFlags(command);
  },
  run: async ([target = ""], flags, io) => giveOrder(target, { kind: "half-open" }, flags, io),
};

function addOrderFlags(command: Command): void {
  command.option("--json", "print JSON");
  addStoreFlag(command);
}

async function giveOrder(text: string, request: OrderRequest, flags: Flags, io: Io): Promise<ExitCode> {
  await using connection = await openOperatorConnection(flags, io);
  const resolved = await targetOf(text, connection);
  const { operator, storeName } = connection;
  // A circuit of its service would still refuse the requests to a host. An order to open is for the target alone.
  const others = request.kind === "open" ? [] : resolved.others;
  const given: GivenOrder[] = [];
  for (const target of [...others, resolved.target]) given.push(await operator.order(target, request));
  const last = given.at(-1) as GivenOrder;
  const { time = systemTime } = io;
  const sequences = given.map(({ sequence }) => sequence);
  const found = await operator.acknowledgements(sequences, time, ACKNOWLEDGED_WITHIN_MS);
  // A process in shadow mode refuses nothing, so an order to close has its effect there too.
  const acknowledgements = found.map(each =>
    request.kind === "close" && each.effect === "shadow" ? ({ ...each, effect: "applied" } as const) : each,
  );
  const stillOpen = (await operator.hosts()).filter(
    ({ kind, state, name }) =>
      request.kind === "close" && kind === "resolver" && state !== "closed" && name !== last.status.name,
  );
  const outcome: OrderOutcome = {
    target: resolved.target,
    others,
    given: last,
    acknowledgements,
    stillOpen,
    storeName,
    waitedMs: ACKNOWLEDGED_WITHIN_MS,
  };
  printOutcome(outcome, flags, io);
  return acknowledgements.every(({ effect }) => effect === "applied") ? ExitCode.ok : ExitCode.partial;
}

/** The policies of the running processes decide first: they know their own ports and services. */
async function targetOf(text: string, { operator, policy }: OperatorConnection): Promise<CommandTarget> {
  const { RESOLVERS } = await import("../../harvest/resolvers/order.ts");
  const [statuses, processes, running] = await Promise.all([
    operator.hosts(),
    operator.processes(),
    operator.policies(),
  ]);
  const policies = [...running.map(({ policy: own }) => own), policy];
  const names = RESOLVERS.map(({ name }) => name);
  return resolveTarget(text, new KnownTargets(policies, statuses, processes, names), policies);
}

function secondsOf(value: unknown): number {
  const seconds = typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds;
  const expected = `expected seconds, more than 0 and at most ${SECONDS_MAX} (one year)`;
  throw usageError("--seconds", `${JSON.stringify(value)} is not a valid duration; ${expected}`);
}

function reasonOf(value: unknown): string {
  const reason = String(value).trim();
  if (reason !== "" && reason.length <= REASON_CHARS_MAX && !/\p{Cc}/u.test(reason)) return reason;
  throw usageError("--reason", `expected one line of 1 to ${REASON_CHARS_MAX} characters`);
}
