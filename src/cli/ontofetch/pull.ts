import { Ontofetch, type PullResult } from "../../ontology/ontofetch.ts";
import { ExitCode } from "../exit-code.ts";
import type { CliCommand } from "../program.ts";
import { interruptible } from "./interrupt.ts";
import { ProgressLine } from "./progress-line.ts";
import { addOntofetchFlags, chosenSources, formatSize, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

/** `ontofetch pull`: fetches what is new, checks it, stores it and locks it. */
export const pull: CliCommand = {
  name: "pull",
  summary: "fetch what is new, check it, store it and lock it",
  configure: command => {
    command
      .argument("[id...]")
      .option("--frozen", "exactly what the lockfile says, or fail")
      .option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  run: (ids, options, io) =>
    interruptible(async signal => {
      const settings = await ontofetchSettingsOf(options, io);
      const sources = chosenSources(settings, ids);
      const progress = new ProgressLine(io);
      const ontofetch = await Ontofetch.open(settings, {
        env: io.env,
        signal,
        onBytes: (id, bytes, totalBytes) => progress.bytes(id, bytes, totalBytes),
        onResume: (id, bytes, totalBytes) => {
          progress.clear();
          io.stderr.write(`${interruptedLine(id, bytes, totalBytes)}\n`);
        },
        onWait: id => {
          progress.clear();
          io.stderr.write(`${id}: another process is at it; waiting for that\n`);
        },
      });
      try {
        const results = await ontofetch.pull(sources, {
          isFrozen: options["frozen"] === true,
          isAll: ids.length === 0,
          onResult: result => {
            progress.done(result.id);
            if (!options["json"])
              (result.outcome === "failed" ? io.stderr : io.stdout).write(`${resultLine(result)}\n`);
          },
        });
        if (options["json"]) printJson(io, { results: results.map(resultJson) });
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
  kept: "as locked",
} as const;

export function interruptedLine(id: string, bytes: number, totalBytes: number | undefined): string {
  return `${id}: broke off after ${formatSize(bytes)} of ${formatSize(totalBytes)}; asking for the rest`;
}

export function resultLine(result: PullResult): string {
  if (result.outcome === "failed") return `${result.id}: ${result.message}`;
  const { id, outcome, stored, requests, resumedBytes } = result;
  const { version, bytes, format } = stored.manifest;
  const resumed = resumedBytes > 0 ? `, the last ${formatSize(bytes - resumedBytes)} of it after a break` : "";
  const tries = requests > 1 ? ` in ${requests} requests` : "";
  return `${id}: ${OUTCOME_TEXTS[outcome]}, version ${version}, ${formatSize(bytes)} of ${format}${tries}${resumed}`;
}

function resultJson(result: PullResult) {
  if (result.outcome === "failed") return result;
  const { stored, ...rest } = result;
  return { ...rest, path: stored.path, manifest: stored.manifest };
}
