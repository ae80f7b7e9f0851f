import { isOperatorReason, reasonText } from "../../breaker/cooldowns.ts";
import { combinedStatus, type SharedBreakerStatus, worseStatus } from "../../breaker/host-status.ts";
import { type Constraint, type DecidedBy, HOLD, isDocstokgError, type LearnedFrom, RAMP_UP } from "../../errors.ts";
import { agedKey } from "../../http/aged-key.ts";
import { type CacheInspection, inspectCache } from "../../http/cache/cache-inspection.ts";
import { SqliteCache } from "../../http/cache/sqlite-cache.ts";
import { HostNames } from "../../http/host-names.ts";
import type { RecordedHold, RunningProcess } from "../../http/observer.ts";
import { ProcessPolicies } from "../../http/process-policies.ts";
import type { KeySnapshot, LimitOrderSnapshot, TotalOrderSnapshot } from "../../limiter/key-snapshot.ts";
import type { BreakerRoute } from "../../policy/breaker-policy.ts";
import { DecidedBySettings } from "../../policy/decided-by.ts";
import { type ExplainedValue, explainPolicy, withheldKeysText } from "../../policy/explanation.ts";
import type { SentKeys } from "../../policy/identity.ts";
import type { Route } from "../../policy/limit-policies.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { commonName, nameWithoutPartition } from "../../policy/partition-name.ts";
import type { Role } from "../../policy/roles.ts";
import { withoutTier } from "../../policy/service-name.ts";
import { policyTarget } from "../../policy/target.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import type { Flags, Io } from "../program.ts";
import { usageError } from "../usage-error.ts";
import { askedProcesses } from "./asked-processes.ts";
import { type PublishedFacts, withSharedUse } from "./shared-use.ts";
import { sqliteFileProblem } from "./sqlite-file-problem.ts";
import type { NoStoreConnection, StoreConnection } from "./store-connection.ts";

/** The settings of the policy that apply to a request. */
export interface PolicyFacts {
  readonly url: URL;
  readonly role: Role;
  readonly host: string;
  /** What the request carries. */
  readonly sentKeys: SentKeys | undefined;
  readonly route: Route;
  /** The owners of the circuits and cooldowns: the host, its service, or both. */
  readonly breakers: BreakerRoute;
  /** The keys that the request lacks only because of its scheme or port, as text; empty for none. */
  readonly withheldKeys: string;
  /** The policy lists the host or a service that contains it. */
  readonly isListed: boolean;
  readonly trialCalls: number;
  /** The breaker of the host has `mode: shadow`. The mode of the limits is in `route`. */
  readonly isBreakerShadow: boolean;
  readonly values: readonly ExplainedValue[];
}

/** The status that one running process has published about the key of the request, by its own policy. */
export interface ProcessFacts {
  readonly pid: number;
  readonly program: string;
  /** `max_delay_ms` of its policy: how long the call waits. */
  readonly maxDelayMs: number;
  /** Time since the status was published. */
  readonly ageMs: number;
  /** Estimated wait of a new call, from now. */
  readonly readyMs: number;
  readonly constraint: Constraint | undefined;
  /** The setting of its policy behind the constraint; null without one. */
  readonly decidedBy: DecidedBy | null;
  /** The processes together have used up the window of the constraint. When it has capacity again is not known. */
  readonly isUsedUp?: boolean;
  readonly waiting: number;
  readonly inFlight: number;
  readonly windowFailures: number;
  readonly learnedFrom: LearnedFrom | undefined;
  /** The order of an operator that has changed the limits of the key. */
  readonly order: LimitOrderSnapshot | undefined;
  /** The order of an operator that has changed a total that counts the request. */
  readonly totalOrder: TotalOrderSnapshot | undefined;
}

/** The state of the host in the shared store, or the reason why it cannot be read. */
export type SharedFacts =
  | {
      readonly kind: "connected";
      readonly store: string;
      readonly report: SharedBreakerStatus;
      /** The order of an operator that holds the request. It applies to every process, and in shadow mode too. */
      readonly hold: { readonly constraint: Constraint; readonly remainingMs: number } | undefined;
      /** The one that would send the request first is the first one. */
      readonly processes: readonly ProcessFacts[];
      /** Processes that have called partitions of the host: each has limits of its own, which a call without one passes by. */
      readonly partitions: readonly (Pick<ProcessFacts, "pid" | "program"> & { readonly count: number })[];
      /** Processes that may have called the host: they publish only their busiest keys, and not this one. */
      readonly unknown: readonly Pick<ProcessFacts, "pid" | "program">[];
    }
  | { readonly kind: "unknown"; readonly reason: string };

export type CacheFacts =
  | { readonly kind: "unread"; readonly reason: string }
  | { readonly kind: "read"; readonly found: readonly CacheInspection[] };

export function policyFacts(policy: LoadedPolicy, url: URL, role: Role): PolicyFacts {
  const { ratelimits, breakers } = policy;
  const { host, path, sentKeys, route } = routeOf(policy, url, role);
  const units = breakers.resolved.route(host, path);
  return {
    url,
    role,
    host,
    sentKeys,
    route,
    breakers: units,
    withheldKeys: withheldKeysText(policy, { host, path, sentKeys }),
    isListed: route.name !== host || ratelimits.options.hosts?.[host] !== undefined,
    trialCalls: breakers.resolved.circuit(units.circuit, role).trialCalls,
    isBreakerShadow: breakers.resolved.isShadow(units.circuit),
    values: explainPolicy(policy, host, role, path, sentKeys),
  };
}

/** The limits that a policy has for the request. */
function routeOf(policy: LoadedPolicy, url: URL, role: Role) {
  const host = new HostNames(policy).of(url.origin);
  const path = `${url.pathname}${url.search}`;
  const { sentKeys } = policyTarget(policy, url);
  return { host, path, sentKeys, route: policy.ratelimits.resolved.route(host, role, path, sentKeys) };
}

/** @param isOfCommand the policy of the command applies to every process: its flags ask what another policy would do */
export async function sharedFacts(
  connection: StoreConnection | NoStoreConnection,
  { route, breakers, url, role }: PolicyFacts,
  isOfCommand: boolean,
  flags: Flags,
  io: Io,
): Promise<SharedFacts> {
  if ("problem" in connection) return { kind: "unknown", reason: connection.problem };
  const { observer, storeName } = connection;
  const isOfKey = (candidate: KeySnapshot, { name }: Route) => candidate.key === name && candidate.role === role;
  try {
    const report = await sharedReport(observer, breakers, role);
    const unit = withoutTier(commonName(route.name));
    const held = await observer.hold([unit, ...Object.values(breakers)], role);
    const question = {
      units: [unit],
      isListed: ({ snapshot }: RunningProcess) => snapshot.keys.some(key => isOfKey(key, route)),
    };
    const { running, unknown } = await askedProcesses(connection, question, flags, io);
    const policyOf = await new ProcessPolicies(observer, connection.policy).of(running);
    const ofCommand = { policy: connection.policy, settings: new DecidedBySettings(connection.policy) };
    const wallMs = (io.time ?? systemTime).wallMs();
    const published: PublishedFacts[] = [];
    const partitions: { pid: number; program: string; count: number }[] = [];
    for (const process of running) {
      const { pid, program, writtenMs, snapshot } = process;
      const ageMs = Math.max(0, wallMs - writtenMs);
      const used = isOfCommand ? ofCommand : policyOf(process);
      const { route: own, ...request } = routeOf(used.policy, url, role);
      const count = snapshot.keys.filter(
        ({ key, role: of }) => nameWithoutPartition(key) === own.name && of === role,
      ).length;
      if (count > 0) partitions.push({ pid, program, count });
      const row = snapshot.keys.find(key => isOfKey(key, own));
      if (row === undefined) continue;
      const key = agedKey(row, { ageMs, calls: snapshot.calls });
      const windowFailures = snapshot.hosts.find(status => status.host === breakers.cooldown)?.windowFailures ?? 0;
      const { estimatedWaitMs, constraint, waiting, inFlight, learnedFrom, order, totalOrder } = key;
      const readyMs = Math.max(0, estimatedWaitMs - ageMs);
      const decidedBy = constraint === undefined ? null : used.settings.of(constraint, { ...request, role }, key);
      const state = {
        readyMs,
        constraint,
        decidedBy,
        waiting,
        inFlight,
        windowFailures,
        learnedFrom,
        order,
        totalOrder,
      };
      const facts = { pid, program, maxDelayMs: own.roleBudget.maxDelayMs, ageMs, ...state };
      published.push({ facts, key, isSharing: snapshot.sharesLimits !== false });
    }
    const processes = withSharedUse(published).toSorted((a, b) => knownReadyMs(a) - knownReadyMs(b));
    const silent = unknown.map(({ pid, program }) => ({ pid, program }));
    const hold = held && { constraint: constraintOf(held), remainingMs: held.remainingMs };
    return { kind: "connected", store: storeName, report, hold, processes, partitions, unknown: silent };
  } catch (error) {
    if (!isDocstokgError(error) || error.code !== "DOCSTOKG_STORE") throw error;
    return { kind: "unknown", reason: error.message };
  }
}

/** When a slot or a window becomes free may be unknown: every other process may send the request earlier. */
function knownReadyMs({ readyMs, constraint, isUsedUp = false }: ProcessFacts): number {
  return isUsedUp || waitsForCalls(constraint) ? Number.POSITIVE_INFINITY : readyMs;
}

/**
 * Whether a request waits until other calls end: for a concurrency slot, or because traffic resumes after a cooldown.
 * `max_delay_ms` does not bound such a wait.
 */
export function waitsForCalls(constraint: Constraint | undefined): boolean {
  return constraint?.kind === "concurrency" || constraint?.limit.startsWith(RAMP_UP) === true;
}

/** As the processes name it in refusals. */
function constraintOf({ unit, reason }: RecordedHold): Constraint {
  return { kind: "cooldown", owner: unit, limit: `${HOLD} (${reasonText(reason)})` };
}

/**
 * The circuits of the request with the operators' orders for its role, and the cooldown that ends last. `name` is the
 * owner of whichever blocks the role longest.
 */
async function sharedReport(
  observer: StoreConnection["observer"],
  { host, circuit, cooldown }: BreakerRoute,
  role: Role,
): Promise<SharedBreakerStatus> {
  const owner = await observer.host(circuit);
  const names = new Set([host, cooldown].filter(name => name !== circuit));
  const all = [owner, ...(await Promise.all(Array.from(names, name => observer.host(name))))];
  const cooling = all.reduce((longest, one) => (one.cooldownMs > longest.cooldownMs ? one : longest));
  const ofRole = all.flatMap(({ name, circuits }) =>
    circuits.filter(one => one.name === role && (name === circuit || isOperatorReason(one.reason ?? ""))),
  );
  const blocking = ofRole.length === 0 ? undefined : ofRole.reduce(worseStatus);
  const circuits = [...owner.circuits.filter(({ name }) => name !== role), ...(blocking ? [blocking] : [])];
  const { cooldownMs, cooldownReason } = cooling;
  const running = cooldownReason === undefined ? undefined : { remainingMs: cooldownMs, reason: cooldownReason };
  const isCooldown = cooldownMs > 0 && cooldownMs >= (blocking?.remainingMs ?? 0);
  const { name } = isCooldown ? cooling : (all.find(one => blocking && one.circuits.includes(blocking)) ?? owner);
  return { ...owner, ...combinedStatus(circuits, running), name, circuits };
}

/** `name` is the value of `--cache`. */
export async function cacheFacts(name: unknown, url: URL, role: Role, time: Time): Promise<CacheFacts> {
  if (role === "artifact") return { kind: "unread", reason: "artifact responses are not cached" };
  if (name === undefined) return { kind: "unread", reason: "name the cache with --cache sqlite:<file>" };
  const [, file] = /^sqlite:(.+)$/s.exec(String(name)) ?? [];
  if (file === undefined) throw usageError("--cache", `expected sqlite:<file>, not ${JSON.stringify(name)}`);
  const problem = await sqliteFileProblem(String(name), "cache");
  if (problem !== undefined) throw usageError("--cache", problem.message);
  let cacheError: string | undefined;
  const cache = await SqliteCache.open(file, {
    time,
    onTrouble: error => {
      cacheError ??= error.message;
    },
  });
  try {
    const found = inspectCache(cache, url, time.wallMs());
    return cacheError === undefined ? { kind: "read", found } : { kind: "unread", reason: cacheError };
  } finally {
    cache.close();
  }
}
