import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatRates, type Rate } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { createHub } from "../http/create-hub.ts";
import type { Hub } from "../http/hub.ts";
import type { HubEvent, HubOptions } from "../http/hub-options.ts";
import type { Environment } from "../policy/environment.ts";
import { readFileLayer } from "../policy/file-layer.ts";
import { assemble } from "../policy/layer.ts";
import { loadPolicy } from "../policy/load.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import { SERVICES } from "./resolvers/all.ts";
import type { OntologyRates } from "./service-rates.ts";

export interface OntologyHubOptions extends Pick<HubOptions, "env" | "network" | "time" | "userAgent"> {
  readonly listeners?: readonly ((event: HubEvent) => void)[] | undefined;
}

/** More than a process can send, so that "unlimited" needs no second way through the gate. */
const UNLIMITED: Rate = { limit: 1_000_000, windowUs: 1_000_000 };
/** Names the user's own limits of hosts. */
const LIMITS_VARIABLE = "DOCSTOKG_RLIMITS_YAML";
/** Of one host: these files are large, and nobody is served sooner by fetching many at once. */
const FILES_AT_A_TIME = 2;
/** A large file over a host that asks for pauses takes its time. */
const RETRY = { attempts: 5, deadlineMs: 1_800_000 };

/**
 * A hub under the ontology profile: each service is a group that is limited for each host it calls, `service:host`, on
 * top of what the shipped policy says of hosts. With a shared folder, limits are those of all processes that use it.
 */
export async function createOntologyHub(
  {
    rates,
    sharedDir,
    store,
    allowsPrivate,
  }: Pick<OntofetchSettings, "rates" | "sharedDir" | "store" | "allowsPrivate">,
  { env, network, time, userAgent, listeners = [] }: OntologyHubOptions = {},
): Promise<Hub> {
  const folder = sharedDir ?? join(store, ".ontofetch");
  await makeFolder(folder);
  return createHub({
    policy: { ratelimits: await ontologyLimits(rates, env ?? process.env) },
    env,
    // Registries and redirects name hosts; one of a private network is nobody's business but the user's.
    network: { ...network, allowPrivate: allowsPrivate },
    time,
    userAgent,
    store: sharedDir === undefined ? undefined : `sqlite:${join(sharedDir, "ratelimits.db")}`,
    cache: `sqlite:${join(folder, "answers.db")}`,
    retry: RETRY,
    telemetry: listeners,
  });
}

async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new ConfigError([{ where: folder, path: "", message: `it cannot be made (${code})` }], { cause: error });
  }
}

/**
 * The services' limits on top of the user's own file, if there is one. Throws a ConfigError for what is wrong with that,
 * by its lines.
 */
export async function ontologyLimits(rates: OntologyRates, env: Environment): Promise<RatelimitsOptions> {
  const file = env[LIMITS_VARIABLE];
  if (file === undefined || file === "") return serviceLimits(rates);
  await loadPolicy({ env });
  const { assignments } = await readFileLayer(file);
  const own: RatelimitsOptions = assemble(assignments);
  return { ...own, groups: { ...own.groups, ...serviceLimits(rates).groups } };
}

/** What the hub is told of the services. HEAD counts: servers count it, or do not say. */
function serviceLimits({ default: fallback, perService, guardMs }: OntologyRates): RatelimitsOptions {
  const groups = SERVICES.map(service => {
    const rates = perService.get(service) ?? fallback;
    const budget = { rates: formatRates(rates.length === 0 ? [UNLIMITED] : rates), guard_ms: guardMs ?? 25 };
    const roleLimits = { ...budget, count_head: true };
    const artifact = { ...roleLimits, max_concurrent: FILES_AT_A_TIME };
    return [service, { per_host: true, total: budget, metadata: roleLimits, landing: roleLimits, artifact }] as const;
  });
  return { groups: Object.fromEntries(groups) };
}
