import { breakerReasonText } from "../../breaker/breaker-reason.ts";
import { breakerRows, type SharedBreakerRow } from "../../http/breaker-rows.ts";
import { systemTime } from "../../time/system-time.ts";
import { painter } from "../output/colour.ts";
import { formatUtc } from "../output/duration.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import { addWatchFlags, showView } from "../output/watch.ts";
import type { CommandModule, Io, Subcommand } from "../program.ts";
import { close, halfOpen, open } from "./breaker-orders.ts";
import { policyInUse } from "./policy-in-use.ts";
import { STATE_COLOURS } from "./state-colours.ts";
import { addStoreFlag, openStoreConnection, type StoreConnection } from "./store-connection.ts";

const show: Subcommand = {
  name: "show",
  summary: "print the circuits and cooldowns of hosts and resolvers in the store, and recent failures",
  configure: command => {
    command.option("--open-only", "only hosts and resolvers with a cooldown, or a circuit that is open or half-open");
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

/** `docstokg breaker`: reads and changes the circuits of running processes through their shared store (law S6). */
export const breaker: CommandModule = { commands: [show, open, close, halfOpen] };

async function readRows(connection: StoreConnection, { time = systemTime }: Io): Promise<readonly SharedBreakerRow[]> {
  const { observer } = connection;
  await connection.checkStoreFile();
  const [statuses, processes, { policy }] = await Promise.all([
    observer.hosts(),
    observer.processes(),
    policyInUse(connection, {}),
  ]);
  const { windowUs } = policy.breakers.resolved.rollingWindow;
  return breakerRows(statuses, processes, { wallMs: time.wallMs(), windowUs });
}

function table(rows: readonly SharedBreakerRow[], { storeName }: StoreConnection, io: Io): string {
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
      column === 1 ? paint(STATE_COLOURS[rows[row]?.state ?? "closed"], text) : text,
  };
  return head + formatTable(header, cells, tableOptions);
}
