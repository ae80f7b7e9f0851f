/** What a request is for. Providers limit the three differently, and so do we. */
export const ROLES = ["metadata", "landing", "artifact"] as const;

export type Role = (typeof ROLES)[number];

export function isRole(value: unknown): value is Role {
  return (ROLES as readonly unknown[]).includes(value);
}

export function unknownRoleMessage(value: unknown): string {
  return `${JSON.stringify(value)} is no role; the roles are ${ROLES.join(", ")}`;
}
