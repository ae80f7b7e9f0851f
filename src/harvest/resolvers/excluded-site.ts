import type { HeaderFields } from "../../core/cache/stored-fields.ts";

/**
 * Whether the Internet Archive says that a publisher has excluded its site ("Blocked Site"). The archive then refuses the
 * site, not this program, and has no copy to show.
 */
export function isExcludedSite(status: number, headers: HeaderFields, body: string): boolean {
  if (status !== 403) return false;
  const message = `${headers["x-archive-wayback-runtime-error"] ?? ""} ${body.slice(0, 2000)}`;
  return /AdministrativeAccessControl|Blocked Site/i.test(message);
}
