import { breakerReasonText } from "../../breaker/breaker-reason.ts";
import { describeConstraint } from "../../errors.ts";
import { ProcessPolicies } from "../../http/process-policies.ts";
import { type ProcessKeyRow, type ProcessRow, processRow } from "../../http/process-row.ts";
import type { HoldSnapshot, KeySnapshot } from "../../limiter/key-snapshot.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { commonName } from "../../policy/partition-name.ts";
import { ROLES } from "../../policy/roles.ts";
import { serviceName, withoutTier } from "../../policy/service-name.ts";
import { systemTime } from "../../time/system-time.ts";
import { type Colour, painter } from "../output/colour.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { printable } from "../output/printable.ts";
import { formatTable, type TableOptions, terminalWidth } from "../output/table.ts";
import { addWatchFlags, showView } from "../output/watch.ts";
import type { CommandModule, Io, Subcommand } from "../program.ts";
import { askedProcesses, type ProcessQuestion } from "./asked-processes.ts";
import { hold, release } from "./limit-orders.ts";
import { orderText, reset, set } from "./limit-rates.ts";
import { policyInUse } from "./policy-in-use.ts";
import { targetOf } from "./policy-target.ts";
import { addStoreFlag, openStoreConnection, type StoreConnection } from "./store-connection.ts";

const show: Subcommand = {
  name: "show",
  summary: "print the rate limits of running processes: used, queue, next free slot, limiting window",
  configure: command => {
    command.option("--host <name>", "only this host, URL or service; for a member of a service also the service");
    addWatchFlags(command);
    addStoreFlag(command);
  },
  run: async (_, flags, io) => {
    const host = typeof flags["host"] === "string" ? flags["host"] : undefined;
    await using connection = await openStoreConnection(flags, io);
    const wanted = host === undefined ? undefined : unitsNamed(host, (await policyInUse(connection, {})).policy);
    // Asked only once: the processes publish these keys until many later orders have displaced the question in the log.
    if (wanted !== undefined) await askedProcesses(connection, questionFor(wanted), flags, io);
    const policies = new ProcessPolicies(connection.observer, connection.policy);
    return await showView(flags, io, {
      read: () => readProcesses(connection, policies, wanted, io),
      text: rows => tables(rows, host, connection, io),
    });
  },
};

/** `docstokg limits`: the rate limits of running processes, read, held and changed through their shared store. */
export const limits: CommandModule = { commands: [show, hold, release, set, reset] };

async function readProcesses(
  connection: StoreConnection,
  policies: ProcessPolicies,
  wanted: ReadonlySet<string> | undefined,
  { time = systemTime }: Io,
): Promise<readonly ProcessRow[]> {
  await connection.checkStoreFile();
  const processes = await connection.observer.processes();
  const policyOf = await policies.of(processes);
  return processes
    .map(running => processRow(running, time.wallMs(), policyOf(running).settings))
    .map(row => (wanted === undefined ? row : { ...row, keys: row.keys.filter(key => wanted.has(unitOf(key))) }))
    .sort((a, b) => a.pid - b.pid);
}

function questionFor(wanted: ReadonlySet<string>): ProcessQuestion {
  return { units: [...wanted], isListed: ({ snapshot }) => snapshot.keys.some(key => wanted.has(unitOf(key))) };
}

/** The host or service of a key: a key may also name a tier (`with OPENALEX_API_KEY`) and a partition. */
function unitOf({ key }: Pick<KeySnapshot, "key">): string {
  return withoutTier(commonName(key));
}

/** The hosts and services that a user may mean by a host, a URL, the name of a service, or a key of the table. */
function unitsNamed(name: string, policy: LoadedPolicy): ReadonlySet<string> {
  const text = unitOf({ key: name });
  const [, service] = /^service[: ](.+)$/is.exec(text) ?? [];
  const services = [serviceName(service ?? text), serviceName((service ?? text).toLowerCase())];
  if (service !== undefined) return new Set(services);
  const { host, path } = targetOf(policy, text, "--host");
  const routes = ROLES.map(role => policy.ratelimits.resolved.route(host, role, path));
  return new Set([host, ...routes.map(route => unitOf({ key: route.name })), ...services]);
}

function tables(
  processes: readonly ProcessRow[],
  host: string | undefined,
  { storeName }: StoreConnection,
  io: Io,
): string {
  const { time = systemTime, stdout } = io;
  const columns = terminalWidth(stdout);
  const head = `${formatUtc(time.wallMs())}  ${storeName}\n\n`;
  if (processes.length === 0) return `${head}No process has published its status in this store in the last minute.\n`;
  const rows = processes
    .flatMap(process => process.keys.map(key => ({ process, key, name: keyName(key) })))
    .sort((a, b) => compare(a.name, b.name) || a.process.pid - b.process.pid);
  if (rows.length === 0) {
    const which = host === undefined ? "No rate limit" : `No rate limit of ${host}`;
    return `${head}${processTable(processes, { columns })}\n${which} is in use.\n${partialLines(processes)}`;
  }
  const load = ["used", "per s", "in flight", "queued", "next free", "new call"];
  const header = ["key", "pid", ...load, "pace", "guard", "limited by"];
  const cells = rows.map(({ process, key }) => keyCells(process, key));
  const paint = painter(io);
  const tableOptions = {
    columns,
    hidesRepeats: true,
    paint: (text: string, row: number, column: number) => {
      const key = rows[row]?.key;
      return header[column] === "limited by" && key !== undefined ? paint(colourOf(key), text) : text;
    },
  };
  const table = formatTable(header, cells, tableOptions);
  return `${head}${processTable(processes, { columns })}\n${table}${partialLines(processes)}${orderLines(processes)}`;
}

function partialLines(processes: readonly ProcessRow[]): string {
  const pids = processes.filter(({ isPartial }) => isPartial).map(({ pid }) => pid);
  return pids.length === 0
    ? ""
    : `\nNot all keys are listed: process ${pids.join(", ")} publishes only its busiest ones.\n`;
}

/** Red: slowed down by a 429, in cooldown or with an open circuit. Yellow: at a limit of the policy. */
function colourOf({ constraint, multiplier }: KeySnapshot): Colour {
  if (constraint?.kind === "cooldown" || constraint?.kind === "breaker" || multiplier < 1) return "red";
  return constraint === undefined ? "green" : "yellow";
}

function processTable(processes: readonly ProcessRow[], tableOptions: TableOptions): string {
  const header = ["pid", "program", "machine", "open calls", "in flight", "queued", "updated"];
  const cells = processes.map(({ pid, program, machine, calls, inFlight, waiting, ageMs }) => [
    String(pid),
    program,
    machine,
    String(calls),
    String(inFlight),
    String(waiting),
    `${formatWait(ageMs)} ago`,
  ]);
  return formatTable(header, cells, tableOptions);
}

function keyCells({ pid, ageMs }: ProcessRow, key: ProcessKeyRow): readonly string[] {
  const { windows, unitsPerSecond, inFlight, maxConcurrent, waiting, nextFreeMs, estimatedWaitMs } = key;
  const { multiplier, guardMs, shape } = key;
  return [
    keyName(key),
    String(pid),
    windows.map(usedText).join(" + ") || "unlimited",
    unitsPerSecond === undefined ? "" : String(Number(unitsPerSecond.toPrecision(3))),
    // JSON has no Infinity: a key without a limit arrives as null.
    Number.isFinite(maxConcurrent) && maxConcurrent !== null ? `${inFlight}/${maxConcurrent}` : String(inFlight),
    String(waiting),
    untilText(nextFreeMs - ageMs),
    untilText(estimatedWaitMs - ageMs),
    `${Number(multiplier.toFixed(3))}${shape === "smooth" ? " smooth" : ""}`,
    `${guardMs} ms`,
    limitedBy(key),
  ];
}

/** `3/4 SECOND`, with a star if the server has announced this limit. */
function usedText({ rate, unit = "requests", used, limit, isLearned }: KeySnapshot["windows"][number]): string {
  const counted = unit === "requests" ? "" : `${unit}/`;
  return `${used}/${limit} ${counted}${rate.slice(rate.indexOf("/") + 1)}${isLearned ? "*" : ""}`;
}

function limitedBy({ key, constraint, decidedBy }: ProcessKeyRow): string {
  if (constraint === undefined) return "";
  const limit = breakerReasonText(constraint.owner === key ? constraint.limit : describeConstraint(constraint));
  return decidedBy === null ? limit : `${limit} (${decidedBy.where})`;
}

/** The orders of operators, each once: the processes have the same. */
function orderLines(processes: readonly ProcessRow[]): string {
  const texts = new Map<string, string>();
  for (const { keys, ageMs } of processes) {
    for (const key of keys) {
      const { role, hold: held, order, totalOrder } = key;
      if (held !== undefined)
        texts.set(`hold ${held.target} ${role}`, `${held.target} ${role}: ${holdText(held, ageMs)}`);
      if (order !== undefined) texts.set(keyName(key), `${keyName(key)}: ${orderText(order, ageMs)}`);
      if (totalOrder !== undefined)
        texts.set(`total ${totalOrder.owner}`, `${totalOrder.owner} total: ${orderText(totalOrder, ageMs)}`);
    }
  }
  return texts.size === 0 ? "" : `\n${Array.from(texts.values(), text => `${printable(text)}\n`).join("")}`;
}

/** `held for another 290 s by an operator: maintenance`. */
function holdText({ reason, remainingMs }: HoldSnapshot, ageMs: number): string {
  return `held for another ${formatWait(Math.max(0, remainingMs - ageMs))} by an operator: ${reason}`;
}

function untilText(ms: number): string {
  return ms > 0 ? formatWait(ms) : "now";
}

function keyName({ key, role }: KeySnapshot): string {
  return `${key} ${role}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
