import { formatRates } from "../../core/limits/rate.ts";
import { Ontofetch, type OntofetchOptions } from "../../ontology/ontofetch.ts";
import type { OntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import { ontologyLimits } from "../../ontology/ontology-hub.ts";
import { SERVICES } from "../../ontology/resolvers/all.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { serviceName } from "../../policy/service-name.ts";
import { printDebugPolicy } from "../docstokg/debug-policy.ts";
import { formatTable, terminalWidth } from "../output/table.ts";
import type { Io } from "../program.ts";

/** Opens the fetcher of a command. With NODE_DEBUG=docstokg the limits of hosts and services are printed first. */
export async function openOntofetch(
  settings: OntofetchSettings,
  io: Io,
  options: Partial<OntofetchOptions>,
): Promise<Ontofetch> {
  const { env, stderr } = io;
  const policy = await printDebugPolicy(io, async () => ({
    ratelimits: await ontologyLimits(settings.rates, env),
    env,
  }));
  if (policy !== undefined) stderr.write(`${serviceTable(policy, terminalWidth(stderr))}\n`);
  return Ontofetch.open(settings, { env, ...options });
}

function serviceTable({ ratelimits }: LoadedPolicy, columns: number | undefined): string {
  const rows = SERVICES.map(service => {
    const entry = ratelimits.resolved.entries.find(({ name }) => name === serviceName(service));
    const route = entry && ratelimits.resolved.routeOf(entry, "metadata");
    return [service, formatRates(route?.roleBudget.rates ?? []) || "unlimited"];
  });
  return formatTable(["service", "rates per host"], rows, { columns });
}
