import { sourcesFile } from "../../ontology/ontofetch-settings.ts";
import type { PullResult } from "../../ontology/pull-result.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { formatDuration } from "../output/duration.ts";
import { formatBytes } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { printable } from "../output/printable.ts";
import { PolicyReloader, WATCH_POLICY_FLAG } from "../policy-reloader.ts";
import type { CommandModule } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { openOntofetch } from "./open-ontofetch.ts";
import { ProgressLine } from "./progress-line.ts";
import { ARGUMENTS, addSettingsFlags, chosenSources, ontofetchSettingsOf, RATE_FLAGS } from "./settings-flags.ts";

/** `ontofetch pull`: fetches new versions, validates, stores and locks them. */
export const pull: CommandModule = {
  configure: command => {
    command
      .argument("[id...]", ARGUMENTS.sources)
      .option("--frozen", "fetch exactly the locked versions, or fail")
      .option("--accept", "store changed bytes of a known version, and releases that lost terms")
      .option(...WATCH_POLICY_FLAG)
      .option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile", "check", ...RATE_FLAGS]);
  },
  run: (ids, flags, io) =>
    interruptible(io, async signal => {
      if (flags["frozen"] === true && flags["accept"] === true)
        throw usageError("--accept", "has no effect with --frozen, which accepts only the locked bytes");
      const readSettings = () => ontofetchSettingsOf(flags, io);
      using reloader = await PolicyReloader.open(flags, io, [sourcesFile(flags, io.env, process.cwd())]);
      const settings = await readSettings();
      const sources = chosenSources(settings, ids);
      const progress = new ProgressLine(io);
      const ontofetch = await openOntofetch(settings, io, {
        signal,
        onBytes: (id, bytes, totalBytes) => progress.update(id, bytes, totalBytes),
        onResume: (id, bytes, totalBytes) => {
          progress.clear();
          io.stderr.write(`${resumeLine(id, bytes, totalBytes)}\n`);
        },
        onLimitWait: ({ key, limit, waitMs, waiting }) => {
          progress.clear();
          io.stderr.write(
            `waiting for ${key}: ${limit}, next request in ${formatDuration(waitMs)}, ${waiting} queued\n`,
          );
        },
        onWait: id => {
          progress.clear();
          io.stderr.write(`${id}: another process has its lock; waiting\n`);
        },
      });
      reloader.start({
        reload: async () => ontofetch.reload(await readSettings()),
        log: line => {
          progress.clear();
          io.stderr.write(`${line}\n`);
        },
      });
      try {
        const results = await ontofetch.pull(sources, {
          frozen: flags["frozen"] === true,
          accept: flags["accept"] === true,
          all: ids.length === 0,
          onResult: result => {
            progress.done(result.id);
            if (!flags["json"]) (result.outcome === "failed" ? io.stderr : io.stdout).write(`${resultLine(result)}\n`);
          },
        });
        progress.clear();
        if (flags["json"]) printJson(io, { results: results.map(resultJson) });
        else if (results.length > 1) io.stderr.write(`${closingLine(results)}\n`);
        return results.some(({ outcome }) => outcome === "failed") ? ExitCode.partial : ExitCode.ok;
      } catch (error) {
        progress.clear();
        if (signal.aborted)
          io.stderr.write("Interrupted: what was received is kept. To continue, run the same command.\n");
        throw error;
      } finally {
        progress.clear();
        await ontofetch.close("pull");
      }
    }),
};

const OUTCOME_TEXTS = {
  fetched: "fetched",
  unchanged: "unchanged",
  shared: "fetched by another process",
  kept: "already stored",
} as const;

export function resumeLine(id: string, bytes: number, totalBytes: number | undefined): string {
  return `${id}: connection lost after ${formatBytes(bytes)} of ${formatBytes(totalBytes)}; resuming`;
}

/** How many sources had each outcome: `12 fetched, 3 unchanged, 1 failed`. */
function closingLine(results: readonly PullResult[]): string {
  const counts = new Map<string, number>();
  for (const { outcome } of results) {
    const text = outcome === "failed" ? "failed" : OUTCOME_TEXTS[outcome];
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const parts = [...Object.values(OUTCOME_TEXTS), "failed"].flatMap(text => {
    const count = counts.get(text);
    return count === undefined ? [] : [`${count} ${text}`];
  });
  return parts.join("; ");
}

/** The version and the message may be text of the file or of a service. */
export function resultLine(result: PullResult): string {
  return printable(resultText(result));
}

function resultText(result: PullResult): string {
  const by = result.importedBy.length === 0 ? "" : ` (imported by ${result.importedBy.join(", ")})`;
  if (result.outcome === "failed") return `${result.id}${by}: ${result.message}`;
  const { id, outcome, stored, requests, resumedBytes } = result;
  const { version, bytes, format } = stored.manifest;
  const tries = requests > 1 ? `, ${requests} requests` : "";
  const resumed = resumedBytes > 0 ? `, resumed after ${formatBytes(resumedBytes)}` : "";
  return `${id}${by}: ${OUTCOME_TEXTS[outcome]}, version ${version}, ${format}, ${formatBytes(bytes)}${tries}${resumed}`;
}

function resultJson(result: PullResult) {
  if (result.outcome === "failed") return result;
  const { stored, ...rest } = result;
  return { ...rest, path: stored.path, manifest: stored.manifest };
}
