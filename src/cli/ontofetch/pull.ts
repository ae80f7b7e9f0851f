import type { PullResult } from "../../ontology/ontofetch.ts";
import { sourcesFile } from "../../ontology/ontofetch-settings.ts";
import { ExitCode } from "../exit-code.ts";
import { interruptible } from "../interrupts.ts";
import { formatBytes } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { PolicyReloader, WATCH_POLICY_FLAG } from "../policy-reloader.ts";
import type { CommandModule } from "../program.ts";
import { openOntofetch } from "./open-ontofetch.ts";
import { ProgressLine } from "./progress-line.ts";
import { addSettingsFlags, chosenSources, ontofetchSettingsOf, RATE_FLAGS } from "./settings-flags.ts";

/** `ontofetch pull`: fetches new versions, validates, stores and locks them. */
export const pull: CommandModule = {
  configure: command => {
    command
      .argument("[id...]")
      .option("--frozen", "fetch exactly the locked versions, or fail")
      .option(...WATCH_POLICY_FLAG)
      .option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", "lockfile", "check", ...RATE_FLAGS]);
  },
  run: (ids, flags, io) =>
    interruptible(io, async signal => {
      const readSettings = () => ontofetchSettingsOf(flags, io);
      using reloader = await PolicyReloader.open(flags, io, [sourcesFile(flags, io.env, process.cwd())]);
      const settings = await readSettings();
      const sources = chosenSources(settings, ids);
      const progress = new ProgressLine(io);
      const ontofetch = await openOntofetch(settings, io, {
        signal,
        onBytes: (id, bytes, totalBytes) => progress.bytes(id, bytes, totalBytes),
        onResume: (id, bytes, totalBytes) => {
          progress.clear();
          io.stderr.write(`${resumeLine(id, bytes, totalBytes)}\n`);
        },
        onWait: id => {
          progress.clear();
          io.stderr.write(`${id}: another process is fetching it; waiting\n`);
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
          isFrozen: flags["frozen"] === true,
          isAll: ids.length === 0,
          onResult: result => {
            progress.done(result.id);
            if (!flags["json"]) (result.outcome === "failed" ? io.stderr : io.stdout).write(`${resultLine(result)}\n`);
          },
        });
        if (flags["json"]) printJson(io, { results: results.map(resultJson) });
        return results.some(({ outcome }) => outcome === "failed") ? ExitCode.partial : ExitCode.ok;
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
  kept: "already stored, as locked",
} as const;

export function resumeLine(id: string, bytes: number, totalBytes: number | undefined): string {
  return `${id}: connection lost after ${formatBytes(bytes)} of ${formatBytes(totalBytes)}; resuming`;
}

export function resultLine(result: PullResult): string {
  if (result.outcome === "failed") return `${result.id}: ${result.message}`;
  const { id, outcome, stored, requests, resumedBytes } = result;
  const { version, bytes, format } = stored.manifest;
  const tries = requests > 1 ? `, ${requests} requests` : "";
  const resumed = resumedBytes > 0 ? `, resumed after ${formatBytes(resumedBytes)}` : "";
  return `${id}: ${OUTCOME_TEXTS[outcome]}, version ${version}, ${format}, ${formatBytes(bytes)}${tries}${resumed}`;
}

function resultJson(result: PullResult) {
  if (result.outcome === "failed") return result;
  const { stored, ...rest } = result;
  return { ...rest, path: stored.path, manifest: stored.manifest };
}
