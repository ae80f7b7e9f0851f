/** The role is in the path, as services have different paths for records and for files. */
import type { RaceRole } from "./limits.ts";

/** What the parent asks, and is not counted: the server's code should be compiled before the first request comes. */
export const WARM_PATH = "/warm";

export function pathOf(role: RaceRole, name: string): string {
  return `/${role}/${name}`;
}

export function roleOfPath(path: string): RaceRole {
  return path.startsWith("/artifact/") ? "artifact" : "metadata";
}
