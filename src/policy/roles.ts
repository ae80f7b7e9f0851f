/** What a request is for. Providers limit the three differently, and so do we. */
export const ROLES = ["metadata", "landing", "artifact"] as const;

export type Role = (typeof ROLES)[number];
