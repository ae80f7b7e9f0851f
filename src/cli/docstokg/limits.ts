import { describeConstraint } from "../../errors.ts";
import type { RunningProcess } from "../../http/operator.ts";
import type { KeySnapshot } from "../../limiter/key-snapshot.ts";
import { systemTime } from "../../time/system-time.ts";
import { type Colour, painter } from "../output/colour.ts";
import { formatUtc, formatWait } from "../output/duration.ts";
import { formatTable, type TableOptions } from "../output/table.ts";
import { addWatchFlags, show } from "../output/watch.ts";
import type { CliCommand, Io } from "../program.ts";
import { addStoreFlags, type StoreConnection, withStoreConnection } from "./store-connection.ts";

const showCommand: CliCommand = {
  name: "show",
  summary: "print how the limits of running processes stand: used, queue, next free time, what decides it",
  configure: command => {
    command.option("--host <name>", "only the lanes of this host, or group");
    addWatchFlags(command);
    addStoreFlags(command);
  },
  run: (_, options, io) =>
    withStoreConnection(options, io, connection =>
      show(options, io, {
        see: () => readProcesses(connection, options["host"], io),
        text: seen => tables(seen, connection, io),
      }),
    ),
};

/** `docstokg limits`: how the limits of running processes stand. */
export const limits: CliCommand = {
  name: "limits",
  summary: "show the limits of running processes at work",
  commands: [showCommand],
};

/** A process with what it last said of itself, and how long ago that was. */
export interface ProcessRow extends Pick<RunningProcess, "pid" | "machine" | "program"> {
  readonly ageMs: number;
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly lanes: readonly KeySnapshot[];
}

/** Its clock may be another machine's, and ahead of ours. */
export function processRow({ pid, machine, program, writtenMs, snapshot }: RunningProcess, wallMs: number): ProcessRow {
  const { calls, inFlight, waiting, lanes } = snapshot;
  return { pid, machine, program, ageMs: Math.max(0, wallMs - writtenMs), calls, inFlight, waiting, lanes };
}

async function readProcesses(connection: StoreConnection, host: unknown, io: Io): Promise<readonly ProcessRow[]> {
  const { time = systemTime } = io;
  await connection.checkStoreFile();
  const processes = await connection.operator.processes();
  return processes
    .map(running => processRow(running, time.wallMs()))
    .map(seen => (host === undefined ? seen : { ...seen, lanes: seen.lanes.filter(lane => isNamed(lane, host)) }))
    .sort((a, b) => a.pid - b.pid);
}

function isNamed({ host }: KeySnapshot, name: unknown): boolean {
  const wanted = String(name).toLowerCase();
  return host.toLowerCase() === wanted || host.toLowerCase() === `group ${wanted}`;
}

function tables(processes: readonly ProcessRow[], { place }: StoreConnection, io: Io): string {
  const { time = systemTime, stdout } = io;
  const head = `${formatUtc(time.wallMs())}  ${place}\n\n`;
  if (processes.length === 0) return `${head}No process has said anything here in the last minute.\n`;
  const columns = stdout.isTTY ? stdout.columns : undefined;
  const lanes = processes
    .flatMap(process => process.lanes.map(lane => ({ process, lane })))
    .sort((a, b) => compare(keyName(a.lane), keyName(b.lane)) || a.process.pid - b.process.pid);
  if (lanes.length === 0) return `${head}${processTable(processes, { columns })}\nNo lane has been used.\n`;
  const header = ["lane", "pid", "used", "flight", "queue", "free in", "newcomer", "pace", "guard", "held by"];
  const cells = lanes.map(({ process, lane }, index) => {
    const before = lanes[index - 1];
    return keyCells(process, lane, before !== undefined && keyName(before.lane) === keyName(lane));
  });
  const paint = painter(io);
  const tableOptions = {
    columns,
    paint: (text: string, row: number, column: number) => {
      const lane = lanes[row]?.lane;
      return column === LIMITED_BY_COLUMN && lane !== undefined ? paint(colourOf(lane), text) : text;
    },
  };
  return `${head}${processTable(processes, { columns })}\n${formatTable(header, cells, tableOptions)}`;
}

const LIMITED_BY_COLUMN = 9;

/** Red for what was slowed down by its server, or asked to wait; yellow for what is merely busy. */
function colourOf({ constraint, multiplier }: KeySnapshot): Colour {
  if (constraint?.kind === "cooldown" || multiplier < 1) return "red";
  return constraint === undefined ? "green" : "yellow";
}

function processTable(processes: readonly ProcessRow[], tableOptions: TableOptions): string {
  const header = ["process", "program", "machine", "calls", "in flight", "waiting", "seen"];
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

function keyCells({ pid, ageMs }: ProcessRow, lane: KeySnapshot, isRepeated: boolean): readonly string[] {
  const { windows, inFlight, maxConcurrent, waiting, nextFreeMs, estimatedWaitMs, multiplier, guardMs, shape } = lane;
  return [
    isRepeated ? "" : keyName(lane),
    String(pid),
    windows.map(usedText).join(" + ") || "unlimited",
    // What is no number in JSON has become null there.
    Number.isFinite(maxConcurrent) && maxConcurrent !== null ? `${inFlight}/${maxConcurrent}` : String(inFlight),
    String(waiting),
    untilText(nextFreeMs - ageMs),
    untilText(estimatedWaitMs - ageMs),
    `${Number(multiplier.toFixed(3))}${shape === "smooth" ? " smooth" : ""}`,
    `${guardMs} ms`,
    limitedBy(lane),
  ];
}

/** `3/4 SECOND`, with a star where the server has announced it. */
function usedText({ rate, used, limit, isLearned }: KeySnapshot["windows"][number]): string {
  return `${used}/${limit} ${rate.slice(rate.indexOf("/") + 1)}${isLearned ? "*" : ""}`;
}

function limitedBy({ host, constraint }: KeySnapshot): string {
  if (constraint === undefined) return "";
  return constraint.owner === host ? constraint.limit : describeConstraint(constraint);
}

function untilText(ms: number): string {
  return ms > 0 ? formatWait(ms) : "now";
}

function keyName({ host, role }: KeySnapshot): string {
  return `${host} ${role}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
