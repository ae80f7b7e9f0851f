/**
 * Which value wins when a setting is given in several places. This file is the only copy of that order: the limits,
 * the breakers, `policy explain`, `policy show`, `why` and the warnings all read it.
 *
 * 1. Several sources set the same key: the last layer of `LAYERS` wins, field by field.
 * 2. Several keys set the same value: the functions below list those keys, weakest first. A more specific key wins even
 *    when a stronger layer sets a more general one: a flag for `defaults` does not change a listed host.
 * 3. No key is set: the built-in default of `defaults.ts` holds.
 */
import { groupName } from "./group-name.ts";
import type { Role } from "./roles.ts";

/** The sources of a policy, weakest first. */
export const LAYERS = ["shipped", "user", "environment", "flags"] as const;

/** The keys from the root of a policy file to one value: `["hosts", "api.example.org", "metadata", "rates"]`. */
export type KeyPath = readonly string[];

/** The entry of `ratelimits.yaml` that a request belongs to. With neither host nor group: the defaults. */
export interface LimitScope {
  /** The canonical host, when it has an entry of its own under `hosts`. */
  readonly host?: string | undefined;
  /** The group that the host or path is a member of. */
  readonly group?: string | undefined;
}

/** Fields of a budget that several roles share (`total`). */
export const TOTAL_FIELDS = ["rates", "max_concurrent", "shared", "guard_ms", "shape"] as const;

/** Fields of one role's budget. */
export const ROLE_LIMIT_FIELDS = ["mode", "max_delay_ms", "count_head", ...TOTAL_FIELDS] as const;
export type RoleLimitField = (typeof ROLE_LIMIT_FIELDS)[number];

/** Fields of one circuit. */
export const CIRCUIT_FIELDS = ["fail_max", "reset_timeout_s"] as const;
type CircuitField = (typeof CIRCUIT_FIELDS)[number];

/** Top-level mode < defaults < group < host. */
export function roleLimitPaths(field: RoleLimitField, role: Role, { host, group }: LimitScope): readonly KeyPath[] {
  return [
    ...(field === "mode" ? [["mode"]] : []),
    ["defaults", role, field],
    ...(group === undefined ? [] : [["groups", group, role, field]]),
    ...(host === undefined ? [] : [["hosts", host, role, field]]),
  ];
}

/** The totals that a scope is charged to beside its role's budget, nearest first. Totals inherit nothing. */
export function totalPlaces({ host, group }: LimitScope): readonly { readonly name: string; readonly path: KeyPath }[] {
  return [
    ...(host === undefined ? [] : [{ name: host, path: ["hosts", host, "total"] }]),
    ...(group === undefined ? [] : [{ name: groupName(group), path: ["groups", group, "total"] }]),
  ];
}

/** Defaults < the role's defaults < host < the host's role. Without a host: any host that is not listed. */
export function circuitPaths(field: CircuitField, role: Role, host: string | undefined): readonly KeyPath[] {
  return [
    ["defaults", field],
    ["defaults", "roles", role, field],
    ...(host === undefined
      ? []
      : [
          ["hosts", host, field],
          ["hosts", host, "roles", role, field],
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

/** Top-level mode < host. */
export function breakerModePaths(host: string | undefined): readonly KeyPath[] {
  return [["mode"], ...(host === undefined ? [] : [["hosts", host, "mode"]])];
}

/** Defaults < host. */
export function retryAfterCapPaths(host: string | undefined): readonly KeyPath[] {
  return [["defaults", "retry_after_cap_s"], ...(host === undefined ? [] : [["hosts", host, "retry_after_cap_s"]])];
}

/** The value of the strongest key that is set, or else the built-in one. */
export function effectiveValue<Value>(document: unknown, paths: readonly KeyPath[], builtIn: Value): Value {
  for (let index = paths.length - 1; index >= 0; index -= 1) {
    const value = valueAt(document, paths[index] ?? []);
    if (value !== undefined) return value as Value;
  }
  return builtIn;
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
