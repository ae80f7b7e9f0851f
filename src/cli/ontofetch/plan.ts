import { readLock } from "../../ontology/lockfile.ts";
import { Ontofetch } from "../../ontology/ontofetch.ts";
import { diffPlan } from "../../ontology/plan-diff.ts";
import type { PlanItem } from "../../ontology/planner.ts";
import { ExitCode } from "../exit-code.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CliCommand, Io } from "../program.ts";
import { interruptible } from "./interrupt.ts";
import { addOntofetchFlags, chosenSources, formatSize, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

const diff: CliCommand = {
  name: "diff",
  summary: "what a pull would change, against the lockfile",
  configure: command => {
    command
      .argument("[id...]")
      .option("--json", "print JSON")
      .option("--exit-code", "exit with 1 where anything differs");
    addOntofetchFlags(command);
  },
  run: (ids, options, io) =>
    planned(ids, options, io, async (items, lockfile) => {
      const wholeLock = await readLock(lockfile);
      const lock = ids.length === 0 ? wholeLock : new Map([...wholeLock].filter(([id]) => ids.includes(id)));
      const changes = diffPlan(items, lock);
      if (options["json"]) printJson(io, { changes });
      else {
        const rows = changes.map(({ id, change, fields, message = "" }) => [
          id,
          change,
          message || fields.map(({ field, locked, planned: now }) => `${field}: ${locked} -> ${now}`).join(", "),
        ]);
        io.stdout.write(formatTable(["id", "change", "what"], rows, { columns: terminalWidth(io.stdout) }));
      }
      const differs = changes.some(({ change }) => change !== "same");
      return options["exitCode"] && differs ? ExitCode.partial : ExitCode.ok;
    }),
};

/** `ontofetch plan`: what would be fetched, and from where; nothing is. */
export const plan: CliCommand = {
  name: "plan",
  summary: "what would be fetched: versions, sizes, licences",
  configure: command => {
    command.argument("[id...]").option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  commands: [diff],
  run: (ids, options, io) =>
    planned(ids, options, io, async items => {
      if (options["json"]) printJson(io, { plan: items.map(asJson) });
      else printPlan(items, io);
      return items.some(({ kind }) => kind === "refused") ? ExitCode.partial : ExitCode.ok;
    }),
};

function planned(
  ids: readonly string[],
  options: Readonly<Record<string, unknown>>,
  io: Io,
  then: (items: readonly PlanItem[], lockfile: string) => Promise<ExitCode>,
): Promise<ExitCode> {
  return interruptible(async signal => {
    const settings = await ontofetchSettingsOf(options, io);
    const sources = chosenSources(settings, ids);
    const ontofetch = await Ontofetch.open(settings, { env: io.env, signal });
    try {
      return await then(await ontofetch.plan(sources), settings.lockfile);
    } finally {
      await ontofetch.close("plan");
    }
  });
}

export function printPlan(items: readonly PlanItem[], { stdout, stderr }: Io): void {
  const rows = items.map(item => {
    const { id, resolver } = item.source;
    if (item.kind === "refused") return [id, resolver, "-", "-", "-", "-", `not possible: ${item.message}`];
    const { format = "?", version = "?", bytes, licence = "?", url } = item;
    return [id, resolver, format, version, formatSize(bytes), licence, url];
  });
  const header = ["id", "resolver", "format", "version", "size", "licence", "from"];
  stdout.write(formatTable(header, rows, { columns: terminalWidth(stdout) }));
  for (const item of items) {
    if (item.kind === "fetch") for (const note of item.notes) stderr.write(`${item.source.id}: ${note}\n`);
  }
}

function asJson(item: PlanItem) {
  const { source, ...rest } = item;
  return { id: source.id, resolver: source.resolver, ...rest };
}
