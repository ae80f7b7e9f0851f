import { formatRates } from "../../core/limits/rate.ts";
import { rateUsageFile } from "../../ontology/ontofetch.ts";
import type { OntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import { ontologyLimits } from "../../ontology/ontology-hub.ts";
import { type KeyUsage, readRateUsage } from "../../ontology/rate-usage.ts";
import { SERVICES } from "../../ontology/resolvers/all.ts";
import { loadPolicy } from "../../policy/load.ts";
import { ExitCode } from "../exit-code.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CliCommand, Io } from "../program.ts";
import { addOntofetchFlags, ontofetchSettingsOf, printJson } from "./settings-flags.ts";

/** So many runs are recent. */
const RECENT_RUNS = 50;

interface KeyReport extends KeyUsage {
  readonly windows: string;
  /** What the shipped policy allows the host in all, whoever asks. */
  readonly above: string;
}

const doctor: CliCommand = {
  name: "doctor",
  summary: "keys and their windows, and how long recent runs waited for them",
  configure: command => {
    command.option("--json", "print JSON");
    addOntofetchFlags(command);
  },
  run: async (_args, options, io) => {
    const settings = await ontofetchSettingsOf(options, io);
    const runs = await readRateUsage(rateUsageFile(settings), RECENT_RUNS);
    const keys = await keyReports(
      settings,
      io,
      runs.flatMap(run => run.keys),
    );
    const shared = settings.sharedDir ?? null;
    if (options["json"]) {
      printJson(io, { shared_dir: shared, runs: runs.length, keys });
      return ExitCode.ok;
    }
    io.stdout.write(
      `limits are ${shared === null ? "each process's own: no shared_dir is set" : `shared in ${shared}`}\n`,
    );
    io.stdout.write(`${runs.length} recent ${runs.length === 1 ? "run" : "runs"}\n\n`);
    const rows = keys.map(key => [
      key.key,
      key.windows,
      key.above,
      String(key.granted),
      String(key.refused),
      String(Math.round(key.blockedMs)),
      String(Math.round(key.longestMs)),
      String(key.cooldowns),
    ]);
    io.stdout.write(
      formatTable(["key", "windows", "host in all", "sent", "put back", "blocked ms", "longest", "pauses"], rows, {
        columns: terminalWidth(io.stdout),
      }),
    );
    return ExitCode.ok;
  },
};

/** `ontofetch rl`: the rate limits of services. */
export const rl: CliCommand = { name: "rl", summary: "rate limits of services", commands: [doctor] };

/** The services' own keys, whether used or not, and every host that recent runs have used. */
async function keyReports(
  settings: OntofetchSettings,
  { env }: Io,
  used: readonly KeyUsage[],
): Promise<readonly KeyReport[]> {
  const { ratelimits } = await loadPolicy({ ratelimits: await ontologyLimits(settings.rates, env), env });
  const sums = new Map<string, KeyUsage>();
  const add = (usage: KeyUsage) => {
    const sum = sums.get(usage.key);
    if (sum === undefined) sums.set(usage.key, { ...usage });
    else {
      sum.granted += usage.granted;
      sum.refused += usage.refused;
      sum.blockedMs += usage.blockedMs;
      sum.longestMs = Math.max(sum.longestMs, usage.longestMs);
      sum.cooldowns += usage.cooldowns;
    }
  };
  for (const service of SERVICES) {
    add({ key: `${service}:default`, granted: 0, refused: 0, blockedMs: 0, longestMs: 0, cooldowns: 0 });
  }
  for (const usage of used) add(usage);
  return [...sums.values()]
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(usage => {
      const route = ratelimits.resolved.routeByName(`group ${usage.key}`, "metadata");
      const above = (route?.above ?? []).filter(({ name }) => name !== `group ${usage.key}`);
      return {
        ...usage,
        windows: formatRates(route?.roleBudget.rates ?? []) || "unlimited",
        above: above.map(({ policy }) => formatRates(policy.rates)).join(", "),
      };
    });
}
