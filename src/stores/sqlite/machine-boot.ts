import { readFileSync } from "node:fs";

/** Linux has a new one with each start of the machine. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * Which start of this machine it is; empty where nobody can tell. It is not derived from the wall clock and the time
 * since the start: these drift and step apart, and two processes would disagree.
 */
export function machineBootId(): string {
  try {
    return readFileSync(BOOT_ID, "utf8").trim();
  } catch {
    return "";
  }
}
