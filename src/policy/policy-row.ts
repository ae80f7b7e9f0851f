import { canonicalHostIfValid } from "./layer.ts";
import { type BudgetPolicy, groupName } from "./limits.ts";
import type { LoadedPolicy } from "./load.ts";
import { ROLES } from "./roles.ts";

/** One line of the effective table. What does not apply is absent. */
export interface PolicyRow {
  readonly host: string;
  readonly role: string;
  readonly rates: string;
  readonly maxDelayMs?: number;
  readonly countsHead?: boolean;
  /** Of the role and of what stands above it, whichever is less; absent for no cap. */
  readonly maxConcurrent?: number;
  readonly failMax?: number;
  readonly resetS?: number;
  readonly backend: string;
  readonly aimd: boolean;
}

/** Every host and group that is listed, its roles, and the defaults for all others. */
export function policyRows(policy: LoadedPolicy): readonly PolicyRow[] {
  const { hosts = {} } = policy.ratelimits.options;
  const listed = new Set([...Object.keys(hosts), ...Object.keys(policy.breakers.options.hosts ?? {})]);
  const rows = [...listed].flatMap(host => hostPolicyRows(policy, { host }));
  for (const { group, host, path } of groupRepresentatives(policy))
    rows.push(...rowsAt(policy, host, path, groupName(group)));
  return [...rowsAt(policy, "unlisted.invalid", undefined, "(any other)"), ...rows];
}

/** Each group with somebody who uses its lanes: a member that is not listed as a host, or that has a path. */
export function groupRepresentatives(
  policy: LoadedPolicy,
): readonly { readonly group: string; readonly host: string; readonly path: string | undefined }[] {
  const { hosts = {}, groups = {} } = policy.ratelimits.options;
  return Object.entries(groups).flatMap(([group, { members = [] }]) => {
    const places = members.map(member => {
      const [name = "", ...rest] = member.split("/");
      return { group, host: canonicalHostIfValid(name), path: rest.length > 0 ? `/${rest.join("/")}` : undefined };
    });
    return places.filter(({ host, path }) => path !== undefined || !Object.hasOwn(hosts, host)).slice(0, 1);
  });
}

export function hostPolicyRows(
  policy: LoadedPolicy,
  { host, path }: { readonly host: string; readonly path?: string | undefined },
): readonly PolicyRow[] {
  const { name } = policy.ratelimits.resolved.route(host, "metadata", path);
  return rowsAt(policy, host, path, name);
}

function rowsAt(policy: LoadedPolicy, host: string, path: string | undefined, shown: string): readonly PolicyRow[] {
  const { resolved, options } = policy.ratelimits;
  const common = { backend: options.backend?.kind ?? "memory", aimd: resolved.aimd.enabled };
  const rows: PolicyRow[] = ROLES.map(role => {
    const { roleBudget, above } = resolved.route(host, role, path);
    const maxConcurrent = Math.min(roleBudget.maxConcurrent, ...above.map(total => total.policy.maxConcurrent));
    const { failMax, resetUs } = policy.breakers.resolved.circuit(host, role);
    const { maxDelayMs, countsHead } = roleBudget;
    return {
      host: shown,
      role,
      ...budgetCells({ ...roleBudget, maxConcurrent }),
      maxDelayMs,
      countsHead,
      failMax,
      resetS: resetUs / 1e6,
      ...common,
    };
  });
  const { above } = resolved.route(host, "metadata", path);
  const totals = above.map(({ name, policy: total }) => ({
    host: shown,
    role: name === host || above.length === 1 ? "total" : `total of ${name}`,
    ...budgetCells(total),
    ...common,
  }));
  return [...rows, ...totals];
}

function budgetCells({ labels, maxConcurrent }: BudgetPolicy): Pick<PolicyRow, "rates" | "maxConcurrent"> {
  const rates = labels.join(" + ");
  return Number.isFinite(maxConcurrent) ? { rates, maxConcurrent } : { rates };
}
