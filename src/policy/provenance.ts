import { formatRates, MAX_COST_LIMIT, parseRates } from "../core/limits/rate.ts";
import {
  type Constraint,
  type DecidedBy,
  HOLD,
  type LimitChanges,
  type OrderedRate,
  PROBE_IN_FLIGHT,
  RAMP_UP,
} from "../errors.ts";
import { budgetUnitOf } from "./budget-unit.ts";
import {
  type ExplainedValue,
  explainBudget,
  explainPolicy,
  explainResolver,
  explainSettings,
  explainTarget,
} from "./explanation.ts";
import type { SentKeys } from "./identity.ts";
import { STORE_AWAY } from "./limits-share.ts";
import type { LoadedPolicy } from "./load.ts";
import type { Role } from "./roles.ts";
import { isServiceName, serviceName, serviceOfName, withoutTier } from "./service-name.ts";

/** The parts of a request that decide which setting applies to it. */
export interface ExplainedRequest {
  /** A canonical host, or the name of a role budget. */
  readonly host: string;
  readonly role: Role;
  readonly path?: string | undefined;
  /** What the request carries. @default what requests over https carry */
  readonly sentKeys?: SentKeys | undefined;
}

const RESOLVER = /^resolver (.+)$/;

/**
 * The setting behind a limit or circuit that made a request wait or refused it: its value, and the line, variable or flag
 * that set it.
 * @param changes what has changed the limits of the key since the policy was loaded
 */
export function decidedByOf(
  policy: LoadedPolicy,
  constraint: Constraint,
  request: ExplainedRequest,
  changes: LimitChanges = {},
): DecidedBy {
  const isBreaker = constraint.kind === "breaker";
  const mode = isShadow(policy, request, isBreaker) ? "shadow" : "enforce";
  if (isBreaker) return { circuit: constraint.owner, ...circuitSetting(policy, constraint, request), mode };
  return { limit: constraint.limit, ...limitSetting(policy, constraint, request, changes), mode };
}

type Setting = Pick<DecidedBy, "value" | "where">;

function limitSetting(
  policy: LoadedPolicy,
  { kind, owner, limit }: Constraint,
  request: ExplainedRequest,
  { learnedFrom, order, totalOrder }: LimitChanges,
): Setting {
  if (kind === "store" || limit.includes(STORE_AWAY))
    return settingOf(policy, "backend.when_store_away", limit, "when_store_away");
  if (kind === "cooldown")
    return { value: limit, where: limit.startsWith(HOLD) ? "an operator's order" : "a response of the server" };
  const cap = /^max_(?:concurrent|inflight) (\d+)(?: \(shared by all processes\))?$/.exec(limit)?.[1];
  if (limit.startsWith("max_inflight")) return settingOf(policy, "global.max_inflight", Number(cap));
  const decisive = [order, totalOrder].find(each => each && isOrderedLimit(each, limit, cap));
  if (decisive !== undefined)
    return {
      value: cap === undefined ? decisive.rates : decisive.maxConcurrent,
      where: `an operator's order: ${decisive.reason} (${decisive.by})`,
    };
  // The limit of another unit than requests: `credits 100000/DAY`.
  const unit = /^([a-z][a-z0-9_]*) \d+\//.exec(limit)?.[1];
  const rates = unit === undefined ? "rates" : `costs.${unit}`;
  const field = cap === undefined ? rates : "max_concurrent";
  const wanted = cap ?? (unit === undefined ? limit : limit.replaceAll(`${unit} `, ""));
  const same = explainBudget(policy, request.host, request.role, request.path, request.sentKeys)
    .filter(value => value.field === field || value.field.endsWith(`.${field}`))
    .filter(({ value }) => [value].flat().some(each => isSameLimit(String(each), wanted)));
  // The total of a service may have the same number as the role of its host: the owner decides which one is meant.
  const total = `${withoutTier(owner)} total.${field}`;
  const isOfRole = owner === request.host || serviceOfName(withoutTier(owner)) === undefined;
  const found = (isOfRole ? undefined : same.find(value => value.field === total)) ?? same[0];
  if (found !== undefined) return { value: found.value, where: whereOf(found) };
  if (learnedFrom === undefined) return { value: limit, where: "built-in default" };
  const at = new Date(learnedFrom.wallMs).toISOString();
  return { value: limit, where: `learned from ${learnedFrom.source} at ${at}` };
}

function circuitSetting(policy: LoadedPolicy, { owner, limit }: Constraint, request: ExplainedRequest): Setting {
  if (limit.includes("cli-open:")) return { value: limit, where: "an operator's order" };
  if (limit.includes("retry-after")) return { value: limit, where: "Retry-After of the server" };
  if (limit.includes("rolling-window"))
    return settingOf(policy, "breaker.rolling_window.threshold_failures", limit, "threshold_failures");
  if (limit.includes("slow-calls"))
    return settingOf(policy, "breaker.rolling_window.slow_call_ms", limit, "slow_call_ms");
  const resolver = RESOLVER.exec(owner)?.[1];
  // All trial calls are in flight: their number decides, not the failures that opened the circuit.
  const isTrial = limit === PROBE_IN_FLIGHT || limit.startsWith(RAMP_UP);
  const name = isTrial && resolver === undefined ? "trial_calls" : "fail_max";
  const values = resolver === undefined ? circuitValues(policy, owner, request) : explainResolver(policy, resolver);
  const found = values.find(({ field }) => field === `breaker.${name}` || field === `resolver.${name}`);
  return found === undefined
    ? { value: limit, where: "built-in default" }
    : { value: `${name} ${found.value}`, where: whereOf(found) };
}

function settingOf(policy: LoadedPolicy, field: string, fallback: unknown, name?: string): Setting {
  const found = explainSettings(policy).find(value => value.field === field);
  if (found === undefined) return { value: fallback, where: "built-in default" };
  return { value: name === undefined ? found.value : `${name} ${found.value}`, where: whereOf(found) };
}

/** A request that names a service instead of a host has the settings of the circuit's owner. */
function circuitValues(policy: LoadedPolicy, owner: string, request: ExplainedRequest): readonly ExplainedValue[] {
  const { host, role, path } = request;
  return isServiceName(host)
    ? explainTarget(policy, owner, role)
    : explainPolicy(policy, withoutTier(host), role, path);
}

function whereOf({ sources }: ExplainedValue): string {
  return sources.at(-1)?.where ?? "built-in default";
}

/** @param cap the number of `max_concurrent`, if that is the limit */
function isOrderedLimit({ rates, maxConcurrent }: OrderedRate, limit: string, cap: string | undefined): boolean {
  return cap === undefined ? rates !== "" && isSameLimit(rates, limit) : Number(cap) === maxConcurrent;
}

/** Whether a rate of the policy is among the limits of a constraint, which may join several by `+`. */
function isSameLimit(value: string, limit: string): boolean {
  const rates = limit.replace(/^even spacing of /, "").replace(/ \(shared by all processes\)$/, "");
  const wanted = new Set(rates.split("+"));
  return wanted.has(value) || ratesIn(value).some(rate => wanted.has(rate));
}

/** The rates of a value in the form of constraints: `300/MINUTE` for `300/min`. None for a value that has no rates. */
function ratesIn(value: string): readonly string[] {
  try {
    return parseRates(value, MAX_COST_LIMIT).map(rate => formatRates([rate]));
  } catch (error) {
    if (error instanceof RangeError) return [];
    throw error;
  }
}

function isShadow({ ratelimits, breakers }: LoadedPolicy, request: ExplainedRequest, isBreaker: boolean): boolean {
  const { role, host: name, sentKeys } = request;
  const { service, host, path = request.path, tiers } = budgetUnitOf(name);
  if (isBreaker)
    return breakers.resolved.isShadow(
      host === undefined ? serviceName(service) : breakers.resolved.route(host, path).circuit,
    );
  const { resolved } = ratelimits;
  const isHost = host !== undefined && service === undefined && tiers.length === 0;
  const route = isHost ? resolved.route(host, role, path, sentKeys) : resolved.routeByName(name, role);
  return route?.roleBudget.isShadow ?? false;
}
