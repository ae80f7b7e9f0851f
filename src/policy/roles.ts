/**
 * What a request fetches. `metadata`: API calls; `landing`: landing pages of articles; `artifact`: files. Providers limit
 * the three differently, so each has its own limits and circuits.
 */
export type Role = "metadata" | "landing" | "artifact";

export const ROLES = ["metadata", "landing", "artifact"] as const satisfies readonly Role[];

export function isRole(value: unknown): value is Role {
  return (ROLES as readonly unknown[]).includes(value);
}

export function unknownRoleMessage(value: unknown): string {
  return `unknown role ${JSON.stringify(value)}; expected ${ROLES.slice(0, -1).join(", ")} or ${ROLES.at(-1)}`;
}

/** What an order of an operator can limit: a role of a host or service, or the total over its roles. */
export type LimitPart = Role | "total";

export const LIMIT_PARTS = [...ROLES, "total"] as const satisfies readonly LimitPart[];

export function isLimitPart(value: unknown): value is LimitPart {
  return value === "total" || isRole(value);
}
