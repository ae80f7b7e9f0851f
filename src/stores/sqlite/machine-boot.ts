import { readFileSync } from "node:fs";

/** Linux creates a new id at each start of the machine. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * Identifies the current start of this machine; empty if the system does not provide it. It is not derived from the wall
 * clock and the time since the start: they drift apart, and two processes would disagree.
 */
export function machineBootId(): string {
  try {
    return readFileSync(BOOT_ID, "utf8").trim();
  } catch {
    return "";
  }
}
