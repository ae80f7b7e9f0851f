import { readTerms } from "../../ontology/ontology-terms.ts";
import { diffTerms, type TermChange } from "../../ontology/terms-diff.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { printJson } from "../output/json.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule } from "../program.ts";
import { ARGUMENTS, addSettingsFlags, ontofetchSettingsOf, storedVersion } from "./settings-flags.ts";

/** `ontofetch diff hp@A hp@B`: terms added, removed, deprecated and renamed from the first to the second version. */
export const diff: CommandModule = {
  configure: command => {
    command
      .argument("<old>", ARGUMENTS.version)
      .argument("<new>", "the version that is compared with it, in the same form")
      .option("--json", "print JSON")
      .option("--exit-code", "exit with 1 if anything differs");
    addSettingsFlags(command, ["sources", "store", "lockfile"]);
  },
  run: ([oldName = "", newName = ""], flags, io) =>
    interruptible(io, async signal => {
      const settings = await ontofetchSettingsOf(flags, io);
      const before = await storedVersion(settings, oldName, signal);
      const after = await storedVersion(settings, newName, signal);
      const { terms: oldTerms } = await readTerms(before, signal);
      const { terms: newTerms } = await readTerms(after, signal);
      const changes = diffTerms(oldTerms, newTerms);
      const counts = countsOf(changes);
      if (flags["json"]) {
        const of = ({ manifest }: typeof before, terms: number) => ({
          id: manifest.id,
          version: manifest.version,
          terms,
        });
        printJson(io, { old: of(before, oldTerms.size), new: of(after, newTerms.size), counts, changes });
      } else {
        const rows = changes.map(({ change, iri, label = "", oldLabel, replacedBy }) => [
          change,
          iri,
          oldLabel === undefined ? label : `${oldLabel} -> ${label}`,
          replacedBy === undefined ? "" : `replaced by ${replacedBy}`,
        ]);
        io.stdout.write(
          formatTable(["change", "term", "label", "details"], rows, { columns: terminalWidth(io.stdout) }),
        );
        const list = Object.entries(counts).map(([change, count]) => `${count} ${change}`);
        io.stderr.write(`${oldTerms.size} -> ${newTerms.size} terms; ${list.join(", ") || "no differences"}\n`);
      }
      return flags["exitCode"] && changes.length > 0 ? ExitCode.partial : ExitCode.ok;
    }),
};

function countsOf(changes: readonly TermChange[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { change } of changes) counts[change] = (counts[change] ?? 0) + 1;
  return counts;
}
