import { canonicalHost } from "../../core/text/host.ts";
import { ConfigError } from "../../errors.ts";
import { HostNames } from "../../http/host-names.ts";
import type { SharedBreakerStatus } from "../../http/operator.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { systemTime } from "../../time/system-time.ts";
import { ExitCode } from "../exit-code.ts";
import { type Colour, painter } from "../output/colour.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { formatTable } from "../output/table.ts";
import { addWatchFlags, show } from "../output/watch.ts";
import type { CliCommand, Io } from "../program.ts";
import { type BreakerRow, breakerRows } from "./breaker-rows.ts";
import { addStoreFlags, type StoreConnection, withStoreConnection } from "./store-connection.ts";

const COLOURS = { open: "red", half_open: "yellow", closed: "green" } as const satisfies Record<string, Colour>;
const SECONDS_MAX = 366 * 86_400;
const REASON_CHARS_MAX = 200;

const showCommand: CliCommand = {
  name: "show",
  summary: "print which hosts are cut off, in all running processes together",
  configure: command => {
    command.option("--open-only", "leave out those that are closed");
    addWatchFlags(command);
    addStoreFlags(command);
  },
  run: (_, options, io) =>
    withStoreConnection(options, io, connection =>
      show(options, io, {
        see: async () => {
          const rows = await readRows(connection, io);
          return options["openOnly"] ? rows.filter(({ state }) => state !== "closed") : rows;
        },
        text: rows => table(rows, connection, io),
      }),
    ),
};

const open: CliCommand = {
  name: "open",
  summary: "cut a host off, for all processes, until the time is over or somebody closes it",
  configure: command => {
    command
      .argument("<host|url>")
      .requiredOption("--seconds <number>", "for how long")
      .option("--reason <text>", "why, for whoever is refused or looks", "operator")
      .option("--json", "print JSON");
    addStoreFlags(command);
  },
  run: async ([target = ""], options, io) => {
    const seconds = secondsOf(options["seconds"]);
    const reason = reasonOf(options["reason"]);
    return withStoreConnection(options, io, async ({ policy, place, operator }) => {
      const host = hostOf(policy, target);
      const report = await operator.open(host, seconds, reason);
      if (!options["json"] && report.remainingMs > seconds * 1000)
        io.stdout.write(`It was cut off for longer than that already, and the later end counts.\n`);
      return printReport(report, options, io, `Processes that share ${place} keep to it with their next request.`);
    });
  },
};

const close: CliCommand = {
  name: "close",
  summary: "let a host be called again: what is held against it is forgotten, in all processes",
  configure: command => {
    command.argument("<host|url>").option("--json", "print JSON");
    addStoreFlags(command);
  },
  run: ([target = ""], options, io) =>
    withStoreConnection(options, io, async ({ policy, place, operator }) => {
      const report = await operator.close(hostOf(policy, target));
      return printReport(report, options, io, `Processes that share ${place} let their next request through.`);
    }),
};

/** `docstokg breaker`: what running processes hold against hosts, and an operator's word on it (law S6). */
export const breaker: CliCommand = {
  name: "breaker",
  summary: "show, open and close the circuits of running processes",
  commands: [showCommand, open, close],
};

async function readRows(connection: StoreConnection, { time = systemTime }: Io): Promise<readonly BreakerRow[]> {
  const { operator, policy } = connection;
  await connection.checkStoreFile();
  const [reports, processes] = await Promise.all([operator.hosts(), operator.processes()]);
  const { windowUs } = policy.breakers.resolved.rollingWindow;
  return breakerRows(reports, processes, { wallMs: time.wallMs(), windowUs });
}

function table(rows: readonly BreakerRow[], { place }: StoreConnection, io: Io): string {
  const { time = systemTime, stdout } = io;
  const head = `${formatUtc(time.wallMs())}  ${place}\n\n`;
  if (rows.length === 0) return `${head}Nothing is held against any host.\n`;
  const paint = painter(io);
  const header = ["host", "state", "roles", "open until (UTC)", "remaining", "window", "probes", "reason"];
  const cells = rows.map(row => [
    row.kind === "host" ? row.name : `resolver ${row.name}`,
    row.state,
    row.roles.join(", "),
    row.openUntil === null ? "" : `${row.openUntil.slice(0, 19)}Z`,
    row.remainingMs > 0 ? `${Math.ceil(row.remainingMs / 1000)} s` : "",
    String(row.windowFailures),
    String(row.probes),
    row.reason ?? "",
  ]);
  const tableOptions = {
    columns: stdout.isTTY ? stdout.columns : undefined,
    paint: (text: string, row: number, column: number) =>
      column === 1 ? paint(COLOURS[rows[row]?.state ?? "closed"], text) : text,
  };
  return head + formatTable(header, cells, tableOptions);
}

function printReport(
  report: SharedBreakerStatus,
  options: Readonly<Record<string, unknown>>,
  io: Io,
  what: string,
): ExitCode {
  const { name, state, remainingMs, reason } = report;
  const untilMs = (io.time ?? systemTime).wallMs() + remainingMs;
  if (options["json"]) {
    const openUntil = remainingMs > 0 ? new Date(untilMs).toISOString() : null;
    io.stdout.write(`${JSON.stringify({ host: name, state, reason: reason ?? null, openUntil, remainingMs })}\n`);
    return ExitCode.ok;
  }
  const since = remainingMs > 0 ? ` until ${formatUtc(untilMs)} (${formatWait(remainingMs)}), ${reason}` : "";
  io.stdout.write(`${name} is ${painter(io)(COLOURS[state], state)}${since}.\n${what}\n`);
  return ExitCode.ok;
}

/** By the name that requests to it are charged to: with a port only where the policy names it so. */
function hostOf(policy: LoadedPolicy, target: string): string {
  try {
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) return new HostNames(policy).of(target);
    const host = canonicalHost(target);
    // The scheme is of no matter where a port is given, and without one there is nothing to look up.
    return /:\d+$/.test(host) ? new HostNames(policy).of(`http://${host}`) : host;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError([{ where: "<host|url>", path: "", message: error.message }]);
  }
}

function secondsOf(value: unknown): number {
  const seconds = typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (seconds > 0 && seconds <= SECONDS_MAX) return seconds;
  const message = `${JSON.stringify(value)} is not a time; expected a number above 0 and up to ${SECONDS_MAX} (a year)`;
  throw new ConfigError([{ where: "--seconds", path: "", message }]);
}

function reasonOf(value: unknown): string {
  const reason = String(value).trim();
  if (reason !== "" && reason.length <= REASON_CHARS_MAX && !/\p{Cc}/u.test(reason)) return reason;
  const message = `expected one line of 1 to ${REASON_CHARS_MAX} characters`;
  throw new ConfigError([{ where: "--reason", path: "", message }]);
}
