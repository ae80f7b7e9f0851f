import { formatRates } from "../../core/limits/rate.ts";
import { isS3Url } from "../../files/s3/s3-url.ts";
import { rateUsageFile } from "../../ontology/ontofetch.ts";
import type { OntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import { backendOf, ontologyLimits } from "../../ontology/ontology-hub.ts";
import { type KeyUsage, readRateUsage } from "../../ontology/rate-usage.ts";
import { SERVICES } from "../../ontology/resolvers/all.ts";
import type { ConfiguredLimits, Route } from "../../policy/limit-policies.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { Role } from "../../policy/roles.ts";
import { serviceName } from "../../policy/service-name.ts";
import { ExitCode } from "../exit-code.ts";
import { formatCount } from "../output/format.ts";
import { printJson } from "../output/json.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { CommandModule, Io, Subcommand } from "../program.ts";
import { addSettingsFlags, ontofetchSettingsOf, RATE_FLAGS } from "./settings-flags.ts";

/** Number of recent runs whose waits are added up. */
const RECENT_RUNS = 50;

interface KeyReport extends KeyUsage {
  /** The limits of requests to registries. */
  readonly windows: string;
  /** The limits of downloads. */
  readonly fileWindows: string;
  /** The limit of the host over all services, from the policy. */
  readonly hostTotal: string;
}

const doctor: Subcommand = {
  name: "doctor",
  summary: "print rate limit keys, their windows and the waits of recent runs",
  configure: command => {
    command.option("--json", "print JSON");
    addSettingsFlags(command, ["sources", "store", ...RATE_FLAGS]);
  },
  run: async (_, flags, io) => {
    const settings = await ontofetchSettingsOf(flags, io);
    const runs = await readRateUsage(rateUsageFile(settings), RECENT_RUNS);
    const keys = await keyReports(
      settings,
      io,
      runs.flatMap(run => run.keys),
    );
    const sharedDir = settings.sharedDir ?? null;
    if (flags["json"]) {
      printJson(io, { sharedDir, runs: runs.length, keys });
      return ExitCode.ok;
    }
    io.stdout.write(`${await sharingText(settings, io)}\n`);
    io.stdout.write(`${formatCount(runs.length, "recent run")}\n\n`);
    const rows = keys.map(key => [
      key.key,
      key.windows,
      key.fileWindows,
      key.hostTotal,
      String(key.granted),
      String(key.refused),
      String(Math.round(key.waitedMs)),
      String(Math.round(key.longestMs)),
      String(key.cooldowns),
    ]);
    const header = [
      ...["key", "windows", "file windows", "host total", "granted", "refused"],
      ...["waited ms", "max wait ms", "cooldowns"],
    ];
    io.stdout.write(formatTable(header, rows, { columns: terminalWidth(io.stdout) }));
    return ExitCode.ok;
  },
};

async function sharingText({ rates, sharedDir, store }: OntofetchSettings, { env }: Io): Promise<string> {
  const backend = await backendOf(await ontologyLimits(rates, env), env);
  // The name of a store may contain a password.
  if (backend !== "memory") return `rate limits are shared through the store of the policy (${backend.split(":", 1)})`;
  if (sharedDir !== undefined) return `rate limits are shared in ${sharedDir}`;
  return `rate limits are shared by processes ${isS3Url(store) ? "of this machine " : ""}with the store ${store}; shared_dir is not set`;
}

/** `ontofetch rl`: the rate limits of services. */
export const rl: CommandModule = { commands: [doctor] };

/** One entry for each service, used or not, and one for each key that recent runs used. */
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
      sum.waitedMs += usage.waitedMs;
      sum.longestMs = Math.max(sum.longestMs, usage.longestMs);
      sum.cooldowns += usage.cooldowns;
    }
  };
  for (const service of SERVICES) {
    add({ key: `${service}:default`, granted: 0, refused: 0, waitedMs: 0, longestMs: 0, cooldowns: 0 });
  }
  for (const usage of used) add(usage);
  return [...sums.values()]
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(usage => {
      const route = keyRoute(ratelimits.resolved, usage.key, "metadata");
      const files = keyRoute(ratelimits.resolved, usage.key, "artifact");
      const above = (route?.above ?? []).filter(({ name }) => name !== route?.name);
      return {
        ...usage,
        windows: windowsOf(route),
        fileWindows: windowsOf(files),
        hostTotal: above.map(({ policy }) => formatRates(policy.rates)).join(", "),
      };
    });
}

function windowsOf(route: Route | undefined): string {
  return route === undefined ? "(not in the policy)" : formatRates(route.roleBudget.rates) || "unlimited";
}

/** The limits of a key `service:host`; for `service:default`, those that the service has at every host. */
function keyRoute(limits: ConfiguredLimits, key: string, role: Role): Route | undefined {
  const [service = "", host] = key.split(":", 2);
  if (host !== "default") return limits.routeByName(serviceName(key), role);
  const entry = limits.entries.find(({ name }) => name === serviceName(service));
  return entry && limits.routeOf(entry, role);
}
