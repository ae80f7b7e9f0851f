/**
 * Which value wins when a setting is given in several places. This file is the only copy of that order: the limits,
 * the breakers, `policy explain`, `policy show`, `why` and the warnings all read it.
 *
 * 1. Several sources set the same key: the last layer of `LAYERS` wins, field by field.
 * 2. Several keys set the same value: the functions below list those keys, weakest first. A more specific key wins even
 *    when a stronger layer sets a more general one: a flag for `defaults` does not change a listed host. `mergeLayers` has
 *    the exceptions.
 * 3. No key is set: the built-in default of `defaults.ts` holds.
 */

import type { Role } from "./roles.ts";
import { serviceName } from "./service-name.ts";

/** The sources of a policy, weakest first. */
export const LAYERS = ["shipped", "user", "environment", "flags"] as const;

/** The keys from the root of a policy file to one value: `["hosts", "api.example.org", "metadata", "rates"]`. */
export type KeyPath = readonly string[];

/** The entries of `ratelimits.yaml` that a request belongs to. Without any: the defaults. */
export interface LimitScope {
  /** The service that the host or path is a member of. */
  readonly service?: string | undefined;
  /** The entries under `hosts`, weakest first: the host, then the host with its port. */
  readonly listed?: readonly string[] | undefined;
  /** The names under `with` whose values the requests carry, weakest first. */
  readonly tiers?: readonly string[] | undefined;
}

/** One entry of a scope: the service, or a listed host. */
export interface ScopePlace {
  /** The host, or `service <name>`. */
  readonly name: string;
  readonly path: KeyPath;
}

/** Fields of a budget that several roles share (`total`). */
export const TOTAL_FIELDS = ["rates", "max_concurrent", "shared", "guard_ms", "shape"] as const;
export type TotalField = (typeof TOTAL_FIELDS)[number];

/** Fields of one role's budget. */
export const ROLE_LIMIT_FIELDS = ["mode", "per", "max_delay_ms", "count_head", ...TOTAL_FIELDS] as const;
export type RoleLimitField = (typeof ROLE_LIMIT_FIELDS)[number];

/** Fields that are maps by unit; each unit is inherited by itself. */
export const ROLE_COST_FIELDS = ["costs", "call_costs", "cost_headers"] as const;
export type RoleCostField = (typeof ROLE_COST_FIELDS)[number];

/** Fields of one circuit. */
export const CIRCUIT_FIELDS = ["fail_max", "reset_timeout_s"] as const;
type CircuitField = (typeof CIRCUIT_FIELDS)[number];

/** The entries of a scope, weakest first: service < host < host with port. */
export function scopePlaces({ service, listed = [] }: LimitScope): readonly ScopePlace[] {
  return [
    ...(service === undefined ? [] : [{ name: serviceName(service), path: ["services", service] }]),
    ...listed.map(host => ({ name: host, path: ["hosts", host] })),
  ];
}

/** Top-level mode < defaults < service < the service's tiers < host < the host's tiers < host with port. */
export function roleLimitPaths(
  field: RoleLimitField | RoleCostField,
  role: Role,
  scope: LimitScope,
): readonly KeyPath[] {
  return [
    ...(field === "mode" ? [["mode"]] : []),
    ["defaults", role, field],
    ...scopePlaces(scope).flatMap(place => placePaths(place, scope, [role, field])),
  ];
}

/** aimd.enabled < service < host < host with port. */
export function adaptsPaths(scope: LimitScope): readonly KeyPath[] {
  return [["aimd", "enabled"], ...scopePlaces(scope).map(({ path }) => [...path, "aimd"])];
}

/** The totals that a scope is charged to beside its role's budget, nearest first. Totals inherit from no other entry. */
export function totalPlaces(scope: LimitScope): readonly ScopePlace[] {
  return scopePlaces(scope).toReversed();
}

/** Total < the totals of its tiers. */
export function totalPaths(field: TotalField | "costs", place: ScopePlace, scope: LimitScope): readonly KeyPath[] {
  return placePaths(place, scope, ["total", field]);
}

function placePaths({ path }: ScopePlace, { tiers = [] }: LimitScope, keys: KeyPath): readonly KeyPath[] {
  return [[...path, ...keys], ...tiers.map(tier => [...path, "with", tier, ...keys])];
}

/** Defaults < the role's defaults < service < the service's role < host < the host's role < host with port. */
export function circuitPaths(field: CircuitField, role: Role, scope: LimitScope): readonly KeyPath[] {
  return [
    ["defaults", field],
    ["defaults", "roles", role, field],
    ...scopePlaces(scope).flatMap(({ path }) => [
      [...path, field],
      [...path, "roles", role, field],
    ]),
  ];
}

/** Defaults < resolver. */
export function resolverPaths(field: CircuitField, resolver: string): readonly KeyPath[] {
  return [
    ["defaults", field],
    ["resolvers", resolver, field],
  ];
}

/** Top-level mode < service < host < host with port. */
export function breakerModePaths(scope: LimitScope): readonly KeyPath[] {
  return [["mode"], ...scopePlaces(scope).map(({ path }) => [...path, "mode"])];
}

/** Defaults < service < host < host with port. */
export function breakerEntryPaths(field: "retry_after_cap_s" | "per", scope: LimitScope): readonly KeyPath[] {
  return [["defaults", field], ...scopePlaces(scope).map(({ path }) => [...path, field])];
}

/** The value of the strongest key that is set, or else the built-in one. */
export function effectiveValue<Value>(document: unknown, paths: readonly KeyPath[], builtIn: Value): Value {
  for (let index = paths.length - 1; index >= 0; index -= 1) {
    const value = valueAt(document, paths[index] ?? []);
    if (value !== undefined) return value as Value;
  }
  return builtIn;
}

/** The values of a map. If several paths set a key, the strongest path decides. */
export function effectiveMap<Value>(document: unknown, paths: readonly KeyPath[]): Readonly<Record<string, Value>> {
  return Object.assign({}, ...paths.map(path => valueAt(document, path) ?? {}));
}

/** Own keys only: a host may be called `constructor`. */
export function valueAt(document: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(
    (at, key) =>
      typeof at === "object" && at !== null && Object.hasOwn(at, key)
        ? (at as Record<string, unknown>)[key]
        : undefined,
    document,
  );
}
