import { ConfigError, type Constraint, isDocstokgError } from "../../errors.ts";
import { type CacheInspection, inspectCache } from "../../http/cache/cache-inspection.ts";
import { SqliteCache } from "../../http/cache/sqlite-cache.ts";
import { HostNames } from "../../http/host-names.ts";
import type { SharedBreakerStatus } from "../../http/operator.ts";
import { type ExplainedValue, explainPolicy } from "../../policy/explanation.ts";
import type { Route } from "../../policy/limits.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import type { Role } from "../../policy/roles.ts";
import type { Time } from "../../time/time.ts";
import { processRow } from "./limits.ts";
import { type NoStoreConnection, type StoreConnection, sqliteFileProblem } from "./store-connection.ts";

/** Where a request belongs, and what the policy says of it. */
export interface PolicyFacts {
  readonly host: string;
  readonly route: Route;
  /** Found under its own name, or its group's. */
  readonly isListed: boolean;
  readonly trialCalls: number;
  readonly values: readonly ExplainedValue[];
}

/** How one running process stands where the request would go, by its own last word. */
export interface ProcessFacts {
  readonly pid: number;
  readonly program: string;
  readonly ageMs: number;
  /** From now. */
  readonly readyMs: number;
  readonly constraint: Constraint | undefined;
  readonly waiting: number;
  readonly inFlight: number;
  readonly windowFailures: number;
}

/** What running processes say; or why nothing is known of any. */
export type SharedFacts =
  | {
      readonly kind: "met";
      readonly place: string;
      readonly report: SharedBreakerStatus;
      readonly processes: readonly ProcessFacts[];
    }
  | { readonly kind: "unknown"; readonly because: string };

export type CacheFacts =
  | { readonly kind: "not-looked-at"; readonly because: string }
  | { readonly kind: "looked"; readonly found: readonly CacheInspection[] };

export function policyFacts(policy: LoadedPolicy, url: URL, role: Role): PolicyFacts {
  const { ratelimits, breakers } = policy;
  const host = new HostNames(policy).of(url.origin);
  const path = `${url.pathname}${url.search}`;
  const route = ratelimits.resolved.route(host, role, path);
  return {
    host,
    route,
    isListed: route.name !== host || ratelimits.options.hosts?.[host] !== undefined,
    trialCalls: breakers.resolved.circuit(host, role).trialCalls,
    values: explainPolicy(policy, host, role, path),
  };
}

export async function sharedFacts(
  met: StoreConnection | NoStoreConnection,
  { host, route }: PolicyFacts,
  role: Role,
  wallMs: number,
): Promise<SharedFacts> {
  if ("problem" in met) return { kind: "unknown", because: met.problem };
  try {
    const [report, running] = await Promise.all([met.operator.host(host), met.operator.processes()]);
    const processes = running.flatMap(one => {
      const { pid, program, ageMs, lanes } = processRow(one, wallMs);
      const lane = lanes.find(candidate => candidate.host === route.name && candidate.role === role);
      const windowFailures = one.snapshot.hosts.find(status => status.host === host)?.windowFailures ?? 0;
      if (lane === undefined) return [];
      const { estimatedWaitMs, constraint, waiting, inFlight } = lane;
      const readyMs = Math.max(0, estimatedWaitMs - ageMs);
      return [{ pid, program, ageMs, readyMs, constraint, waiting, inFlight, windowFailures }];
    });
    return { kind: "met", place: met.place, report, processes: processes.sort((a, b) => a.readyMs - b.readyMs) };
  } catch (error) {
    if (!isDocstokgError(error) || error.code !== "DOCSTOKG_STORE") throw error;
    return { kind: "unknown", because: error.message };
  }
}

/** `name` is what `--cache` says. */
export async function cacheFacts(name: unknown, url: URL, role: Role, time: Time): Promise<CacheFacts> {
  if (role === "artifact") return { kind: "not-looked-at", because: "files are not cached" };
  if (name === undefined) return { kind: "not-looked-at", because: "say with --cache sqlite:<file> where it is" };
  const [, file] = /^sqlite:(.+)$/s.exec(String(name)) ?? [];
  const message =
    file === undefined ? `expected sqlite:<file>, not ${JSON.stringify(name)}` : await sqliteFileProblem(String(name));
  if (file === undefined || message !== undefined)
    throw new ConfigError([{ where: "--cache", path: "", message: message ?? "" }]);
  let cacheError: string | undefined;
  const cache = await SqliteCache.open(file, {
    time,
    onTrouble: error => {
      cacheError ??= error.message;
    },
  });
  try {
    const found = inspectCache(cache, url, time.wallMs());
    return cacheError === undefined ? { kind: "looked", found } : { kind: "not-looked-at", because: cacheError };
  } finally {
    cache.close();
  }
}
