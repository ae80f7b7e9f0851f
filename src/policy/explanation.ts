import { DEFAULT_BREAKERS, DEFAULT_GUARD_MS, DEFAULT_LIMITS } from "./defaults.ts";
import { type Assignment, canonicalHostIfValid } from "./layer.ts";
import { isGroupName } from "./limits.ts";
import type { LoadedPolicy } from "./load.ts";
import type { Role } from "./roles.ts";

/** One value of the effective policy and everything that was said about it; the last one holds. */
export interface ExplainedValue {
  readonly field: string;
  readonly value: unknown;
  readonly said: readonly { readonly where: string; readonly path: string; readonly value: unknown }[];
}

const ROLE_FIELDS = [
  "rates",
  "max_delay_ms",
  "count_head",
  "mode",
  "max_concurrent",
  "shared",
  "guard_ms",
  "shape",
] as const;
const TOTAL_FIELDS = ["rates", "max_concurrent", "shared", "guard_ms", "shape"] as const;
const BREAKER_FIELDS = ["fail_max", "reset_timeout_s", "retry_after_cap_s"] as const;
const BUILT_IN = "built in";

/** Where each value that holds for a host and role came from: the same way that the route takes. */
export function explainPolicy(
  policy: LoadedPolicy,
  host: string,
  role: Role,
  path?: string,
): readonly ExplainedValue[] {
  const { assignments, resolved } = policy.ratelimits;
  const { name, above } = resolved.route(host, role, path);
  const owners = [name, ...above.map(budget => budget.name)];
  const group = owners.find(isGroupName)?.slice("group ".length) ?? groupOfHost(policy, host);
  const roleValues = ROLE_FIELDS.map(field =>
    explained(field, assignments, builtInRoleValue(role, field), [
      ["defaults", role, field],
      ...(group === undefined ? [] : [["groups", group, role, field]]),
      ...(name === host ? [["hosts", host, role, field]] : []),
    ]),
  );
  const totals = above.flatMap(({ name: owner }) => {
    const place = owner === host ? ["hosts", host] : ["groups", owner.slice("group ".length)];
    const shown = owner === host ? "total" : `${owner} total`;
    return TOTAL_FIELDS.map(field =>
      explained(`${shown}.${field}`, assignments, undefined, [[...place, "total", field]]),
    );
  });
  return [...roleValues, ...totals, ...explainCircuit(policy, host, role)].filter(({ said }) => said.length > 0);
}

function explainCircuit(policy: LoadedPolicy, host: string, role: Role): readonly ExplainedValue[] {
  const { assignments } = policy.breakers;
  return BREAKER_FIELDS.map(field => {
    const builtIn = field === "retry_after_cap_s" ? DEFAULT_BREAKERS[field] : DEFAULT_BREAKERS.roles[role][field];
    return explained(`breaker.${field}`, assignments, builtIn, [
      ["defaults", field],
      ["defaults", "roles", role, field],
      ["hosts", host, field],
      ["hosts", host, "roles", role, field],
    ]);
  });
}

function explained(
  field: string,
  assignments: readonly Assignment[],
  builtIn: unknown,
  paths: readonly (readonly string[])[],
): ExplainedValue {
  const said = paths.flatMap(path => {
    const wanted = path.join(".");
    return assignments
      .filter(assignment => assignment.path.join(".") === wanted)
      .map(({ where, value }) => ({ where, path: wanted, value }));
  });
  const all = builtIn === undefined ? said : [{ where: BUILT_IN, path: "", value: builtIn }, ...said];
  return { field, value: all.at(-1)?.value, said: all };
}

function builtInRoleValue(role: Role, field: (typeof ROLE_FIELDS)[number]): unknown {
  if (field === "guard_ms") return DEFAULT_GUARD_MS;
  if (field === "shape") return "burst";
  return field === "max_concurrent" || field === "shared" || field === "mode" ? undefined : DEFAULT_LIMITS[role][field];
}

/** A listed host inherits from the group that names it, also where the two share no total. */
function groupOfHost(policy: LoadedPolicy, host: string): string | undefined {
  const groups = Object.entries(policy.ratelimits.options.groups ?? {});
  return groups.find(([, { members = [] }]) => members.some(member => canonicalHostIfValid(member) === host))?.[0];
}
