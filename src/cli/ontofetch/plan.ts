import { readLock } from "../../ontology/lockfile.ts";
import { diffPlan } from "../../ontology/plan-diff.ts";
import type { PlanItem } from "../../ontology/planner.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { formatBytes } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { printable } from "../output/printable.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule, Flags, Io, Subcommand } from "../program.ts";
import { openOntofetch } from "./open-ontofetch.ts";
import { ARGUMENTS, addSettingsFlags, chosenSources, ontofetchSettingsOf, RATE_FLAGS } from "./settings-flags.ts";

const diff: Subcommand = {
  name: "diff",
  summary: "compare the plan with the lockfile",
  configure: command => {
    command
      .argument("[id...]", ARGUMENTS.sources)
      .option("--json", "print JSON")
      .option("--exit-code", "exit with 1 if a source differs or could not be compared");
    addSettingsFlags(command, ["sources", "store", "lockfile", ...RATE_FLAGS]);
  },
  run: (ids, flags, io) =>
    withPlan(ids, flags, io, async (items, lockfile) => {
      const completeLock = await readLock(lockfile);
      // An argument may be <id>@<version>, so the ids are those of the plan.
      const planned = new Set(items.map(({ source }) => source.id));
      const lock = ids.length === 0 ? completeLock : new Map([...completeLock].filter(([id]) => planned.has(id)));
      const changes = diffPlan(items, lock);
      if (flags["json"]) printJson(io, { changes });
      else {
        const rows = changes.map(({ id, change, fields, message = "" }) => [
          id,
          change,
          message || fields.map(({ field, locked, planned }) => `${field}: ${locked} -> ${planned}`).join(", "),
        ]);
        io.stdout.write(formatTable(["id", "change", "details"], rows, { columns: terminalWidth(io.stdout) }));
      }
      const differs = changes.some(({ change }) => change !== "same");
      return flags["exitCode"] && differs ? ExitCode.partial : ExitCode.ok;
    }),
};

/** `ontofetch plan`: asks the services which versions a pull would fetch, and fetches no file. */
export const plan: CommandModule = {
  configure: command => {
    command.argument("[id...]", ARGUMENTS.sources).option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", ...RATE_FLAGS]);
  },
  commands: [diff],
  run: (ids, flags, io) =>
    withPlan(ids, flags, io, async items => {
      if (flags["json"]) printJson(io, { plan: items.map(asJson) });
      else printPlan(items, io);
      return items.some(({ kind }) => kind === "refused") ? ExitCode.partial : ExitCode.ok;
    }),
};

function withPlan(
  ids: readonly string[],
  flags: Flags,
  io: Io,
  print: (items: readonly PlanItem[], lockfile: string) => Promise<ExitCode>,
): Promise<ExitCode> {
  return interruptible(io, async signal => {
    const settings = await ontofetchSettingsOf(flags, io);
    const sources = chosenSources(settings, ids);
    const ontofetch = await openOntofetch(settings, io, { signal });
    try {
      return await print(await ontofetch.plan(sources), settings.lockfile);
    } finally {
      await ontofetch.close("plan");
    }
  });
}

export function printPlan(items: readonly PlanItem[], { stdout, stderr }: Io): void {
  const rows = items.map(item => {
    const { id, resolver } = item.source;
    if (item.kind === "refused") return [id, resolver, "-", "-", "-", "-", `refused: ${item.message}`];
    const { format = "?", version = "?", bytes, licence = "?", url } = item;
    return [id, resolver, format, version, formatBytes(bytes), licence, url];
  });
  const header = ["id", "resolver", "format", "version", "size", "licence", "url"];
  stdout.write(formatTable(header, rows, { columns: terminalWidth(stdout) }));
  for (const item of items) {
    if (item.kind === "fetch")
      for (const note of item.notes) stderr.write(`${printable(`${item.source.id}: ${note}`)}\n`);
  }
}

function asJson(item: PlanItem) {
  const { source, ...rest } = item;
  return { id: source.id, resolver: source.resolver, ...rest };
}
