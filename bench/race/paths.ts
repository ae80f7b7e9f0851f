/** The path selects the role: services have different paths for records and files. */
import type { RaceRole } from "./limits.ts";

/** Requests of the parent, which are not counted: the server's code is compiled before the first counted request. */
export const WARM_PATH = "/warm";

export function pathOf(role: RaceRole, name: string): string {
  return `/${role}/${name}`;
}

export function roleOfPath(path: string): RaceRole {
  return path.startsWith("/artifact/") ? "artifact" : "metadata";
}
