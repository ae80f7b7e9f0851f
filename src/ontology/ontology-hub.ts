import { join } from "node:path";
import { formatRates } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { makeFolder } from "../files/make-folder.ts";
import { createHub } from "../http/create-hub.ts";
import type { Hub } from "../http/hub.ts";
import type { HubEvent, HubOptions } from "../http/hub-options.ts";
import type { Environment } from "../policy/environment.ts";
import { readFileLayer } from "../policy/file-layer.ts";
import { assemble } from "../policy/layer.ts";
import { loadPolicy } from "../policy/load.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { storeNamesOf } from "../stores/open-store.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import { SERVICES } from "./resolvers/all.ts";
import type { OntologyRates } from "./service-rates.ts";
import { workFolderOf } from "./work-folder.ts";

export interface OntologyHubOptions extends Pick<HubOptions, "dispatcher" | "env" | "network" | "time" | "userAgent"> {
  readonly listeners?: readonly ((event: HubEvent) => void)[] | undefined;
}

/** The path of the user's own `ratelimits.yaml`. */
const LIMITS_VARIABLE = "DOCSTOKG_RLIMITS_YAML";
/** Concurrent downloads from one host. The files are large, so more would only divide the bandwidth. */
const FILES_AT_A_TIME = 2;
/** The deadline is 30 minutes, because a large file from a host that sends Retry-After takes long. */
const RETRY = { attempts: 5, deadlineMs: 1_800_000 };

/**
 * Creates a hub whose policy has each service of ontofetch with `per_host: true`, so its keys are `service:host`. The
 * limits of hosts in the shipped policy apply too. Processes with the same `sharedDir`, or with the same store folder if
 * it is not set, share the limits and cooldowns, unless the policy names a store (`backend`) for them.
 */
export async function createOntologyHub(
  {
    rates,
    sharedDir,
    store,
    allowsPrivate,
  }: Pick<OntofetchSettings, "rates" | "sharedDir" | "store" | "allowsPrivate">,
  { env, network, dispatcher, time, userAgent, listeners = [] }: OntologyHubOptions = {},
): Promise<Hub> {
  const folder = sharedDir ?? workFolderOf(store);
  createFolder(folder);
  const ratelimits = await ontologyLimits(rates, env ?? process.env);
  const backend = await backendOf(ratelimits, env ?? process.env);
  return createHub({
    policy: { ratelimits },
    env,
    // Registries and redirects can name any host, so private networks need the user's permission (allow_private).
    ...(dispatcher === undefined
      ? { network: { proxy: "env", ...network, allowPrivate: allowsPrivate } }
      : { dispatcher }),
    time,
    userAgent,
    // Limits are stored even without `sharedDir`, because a Retry-After must outlive the process that received it.
    store: backend === "memory" ? `sqlite:${join(folder, "ratelimits.db")}` : undefined,
    cache: `sqlite:${join(folder, "answers.db")}`,
    retry: RETRY,
    telemetry: listeners,
  });
}

/**
 * Applies the limits of new settings and of the policy files. Returns every limit that changed.
 * @throws ConfigError, and changes nothing, when a file is invalid or `sharedDir` is another folder.
 */
export async function reloadOntologyHub(
  hub: Hub,
  before: OntofetchSettings,
  { rates, sharedDir, file }: OntofetchSettings,
  env: Environment,
): Promise<readonly PolicyChange[]> {
  if (sharedDir !== before.sharedDir) {
    const change = `changed from ${before.sharedDir ?? "none"} to ${sharedDir ?? "none"}`;
    const message = `${change}, but a running pull cannot change its store; restore the old value, or start the pull again`;
    throw new ConfigError([{ where: file, path: "ratelimit.shared_dir", message }]);
  }
  const changes = await hub.reload({ ratelimits: await ontologyLimits(rates, env) });
  return changes.map(change => ({ ...change, source: fileOfChange(change, file, env) }));
}

/** The hub gets the limits of services and files as one object, so the file of each change is found here. */
function fileOfChange({ setting, source }: PolicyChange, settingsFile: string, env: Environment): string {
  if (source !== "policy.ratelimits") return source;
  const isService = SERVICES.some(service => setting.startsWith(`ratelimits.services.${service}.`));
  return (isService ? undefined : env[LIMITS_VARIABLE]) ?? settingsFile;
}

/** The name of the store for the limits: `memory` unless a variable or policy file names another. */
export async function backendOf(ratelimits: RatelimitsOptions, env: Environment): Promise<string> {
  return storeNamesOf(undefined, { policy: await loadPolicy({ ratelimits, env }), env }).limits;
}

function createFolder(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new ConfigError([{ where: folder, path: "", message: `cannot create the folder (${code})` }], {
      cause: error,
    });
  }
}

/**
 * The limits of the services, added to the user's own ratelimits.yaml if there is one.
 * @throws ConfigError with the lines of every problem in that file.
 */
export async function ontologyLimits(rates: OntologyRates, env: Environment): Promise<RatelimitsOptions> {
  const file = env[LIMITS_VARIABLE];
  if (file === undefined || file === "") return serviceLimits(rates);
  await loadPolicy({ env });
  const { assignments } = await readFileLayer(file);
  const own: RatelimitsOptions = assemble(assignments);
  return { ...own, services: { ...own.services, ...serviceLimits(rates).services } };
}

/** One service of the policy for each service of ontofetch. HEAD requests count, because the services count them or do not say. */
function serviceLimits({ default: fallback, perService, guardMs }: OntologyRates): RatelimitsOptions {
  const services = SERVICES.map(service => {
    const rates = perService.get(service) ?? fallback;
    const budget = { rates: formatRates(rates) || "none", guard_ms: guardMs ?? 25 };
    const roleLimits = { ...budget, count_head: true };
    const artifact = { ...roleLimits, max_concurrent: FILES_AT_A_TIME };
    return [service, { per_host: true, total: budget, metadata: roleLimits, landing: roleLimits, artifact }] as const;
  });
  return { services: Object.fromEntries(services) };
}
