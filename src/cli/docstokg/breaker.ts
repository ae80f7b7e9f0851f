import type { SharedBreakerStatus } from "../../breaker/host-status.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { unknownServiceMessage } from "../../policy/overrides.ts";
import { isServiceName, serviceName } from "../../policy/service-name.ts";
import { policyTarget } from "../../policy/target.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { type Colour, painter } from "../output/colour.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import { addWatchFlags, showView } from "../output/watch.ts";
import type { CommandModule, Flags, Io, Subcommand } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { breakerReasonText } from "./breaker-reason.ts";
import { breakerRows, type CircuitRow } from "./breaker-rows.ts";
import { addStoreFlag, openStoreConnection, type StoreConnection } from "./store-connection.ts";

const COLOURS = { open: "red", half_open: "yellow", closed: "green" } as const satisfies Record<string, Colour>;
const SERVICE_PREFIX = "service:";
const SECONDS_MAX = 366 * 86_400;
const REASON_CHARS_MAX = 200;

const show: Subcommand = {
  name: "show",
  summary: "print open circuits and cooldowns of all running processes",
  configure: command => {
    command.option("--open-only", "only circuits that are open or half-open");
    addWatchFlags(command);
    addStoreFlag(command);
  },
  run: async (_, flags, io) => {
    await using connection = await openStoreConnection(flags, io);
    return await showView(flags, io, {
      read: async () => {
        const rows = await readRows(connection, io);
        return flags["openOnly"] ? rows.filter(({ state }) => state !== "closed") : rows;
      },
      text: rows => table(rows, connection, io),
    });
  },
};

const open: Subcommand = {
  name: "open",
  summary: 'force a host\'s circuit open in all processes, until the time is over or "breaker close"',
  configure: command => {
    command
      .argument("<target>", "a host, a URL, or service:<name>")
      .requiredOption("--seconds <number>", "how long the circuit stays open")
      .option("--reason <text>", 'reason, shown in errors and in "breaker show"', "operator")
      .option("--json", "print JSON");
    addStoreFlag(command);
  },
  run: async ([target = ""], flags, io) => {
    const seconds = secondsOf(flags["seconds"]);
    const reason = reasonOf(flags["reason"]);
    await using connection = await openStoreConnection(flags, io);
    const { policy, storeName, operator } = connection;
    const [unit = ""] = unitsOf(policy, target);
    const status = await operator.open(unit, seconds, reason);
    if (!flags["json"] && status.remainingMs > seconds * 1000)
      io.stdout.write("The circuit was already open for longer; the later end applies.\n");
    const what = isServiceName(unit) ? "this service" : "this host";
    const effect = `Processes that share ${storeName} refuse requests to ${what} from now on.`;
    return printStatus(status, flags, io, effect);
  },
};

const close: Subcommand = {
  name: "close",
  summary: "close a host's circuits in all processes; cooldowns and failure counts are cleared",
  configure: command => {
    command.argument("<target>", "a host, a URL, or service:<name>").option("--json", "print JSON");
    addStoreFlag(command);
  },
  run: async ([target = ""], flags, io) => {
    await using connection = await openStoreConnection(flags, io);
    const { policy, storeName, operator } = connection;
    const [unit = "", ...others] = unitsOf(policy, target);
    // A circuit of its service would still refuse the requests to a host.
    for (const other of others) await operator.close(other);
    const status = await operator.close(unit);
    const what = isServiceName(unit) ? "this service" : "this host";
    const also = others.length === 0 ? "" : ` Closed too: ${others.join(", ")}.`;
    return printStatus(status, flags, io, `Processes that share ${storeName} send requests to ${what} again.${also}`);
  },
};

/** `docstokg breaker`: reads and changes the circuits of running processes through their shared store (law S6). */
export const breaker: CommandModule = { commands: [show, open, close] };

async function readRows(connection: StoreConnection, { time = systemTime }: Io): Promise<readonly CircuitRow[]> {
  const { operator, policy } = connection;
  await connection.checkStoreFile();
  const [statuses, processes] = await Promise.all([operator.hosts(), operator.processes()]);
  const { windowUs } = policy.breakers.resolved.rollingWindow;
  return breakerRows(statuses, processes, { wallMs: time.wallMs(), windowUs });
}

function table(rows: readonly CircuitRow[], { storeName }: StoreConnection, io: Io): string {
  const { time = systemTime, stdout } = io;
  const head = `${formatUtc(time.wallMs())}  ${storeName}\n\n`;
  if (rows.length === 0) return `${head}No open circuits and no cooldowns.\n`;
  const paint = painter(io);
  const header = ["host", "state", "roles", "open until (UTC)", "remaining", "failures", "trial calls", "reason"];
  const cells = rows.map(row => [
    row.kind === "host" ? row.name : `resolver ${row.name}`,
    row.state,
    row.roles.join(", "),
    row.openUntil === null ? "" : `${row.openUntil.slice(0, 19)}Z`,
    row.remainingMs > 0 ? `${Math.ceil(row.remainingMs / 1000)} s` : "",
    String(row.windowFailures),
    String(row.probes),
    row.reason === null ? "" : breakerReasonText(row.reason),
  ]);
  const tableOptions = {
    columns: terminalWidth(stdout),
    paint: (text: string, row: number, column: number) =>
      column === 1 ? paint(COLOURS[rows[row]?.state ?? "closed"], text) : text,
  };
  return head + formatTable(header, cells, tableOptions);
}

function printStatus(status: SharedBreakerStatus, flags: Flags, io: Io, effect: string): ExitCode {
  const { name, state, remainingMs, reason } = status;
  const untilMs = (io.time ?? systemTime).wallMs() + remainingMs;
  if (flags["json"]) {
    const openUntil = remainingMs > 0 ? new Date(untilMs).toISOString() : null;
    io.stdout.write(`${JSON.stringify({ host: name, state, reason: reason ?? null, openUntil, remainingMs })}\n`);
    return ExitCode.ok;
  }
  const until =
    remainingMs > 0
      ? ` until ${formatUtc(untilMs)} (${formatWait(remainingMs)}), ${breakerReasonText(reason ?? "")}`
      : "";
  io.stdout.write(`circuit of ${name}: ${painter(io)(COLOURS[state], state)}${until}\n${effect}\n`);
  return ExitCode.ok;
}

/**
 * What a target means: the host or service itself, then the owners of other circuits and cooldowns that decide about its
 * requests.
 */
function unitsOf(policy: LoadedPolicy, target: string): readonly string[] {
  try {
    if (target.startsWith(SERVICE_PREFIX))
      return [serviceName(knownService(policy, target.slice(SERVICE_PREFIX.length)))];
    const { host, path } = policyTarget(policy, target);
    const { circuit, cooldown } = policy.breakers.resolved.route(host, path);
    // A path that belongs to a service has no circuit of its host.
    const isPart = path !== undefined && policy.ratelimits.resolved.routing.find(host, path).memberPath !== "";
    return [...new Set(isPart ? [circuit, cooldown] : [host, circuit, cooldown])];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError("<target>", error.message);
  }
}

function knownService({ ratelimits: { options } }: LoadedPolicy, name: string): string {
  const services = Object.keys(options.services ?? {});
  const found = services.find(service => service.toLowerCase() === name.toLowerCase());
  if (found === undefined) throw new RangeError(unknownServiceMessage(name, services));
  return found;
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
