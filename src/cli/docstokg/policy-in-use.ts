import { isDocstokgError } from "../../errors.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import type { Flags } from "../program.ts";
import { ROLE_FLAGS } from "./policy-flags.ts";
import type { NoStoreConnection, StoreConnection } from "./store-connection.ts";

/** The policy by which a command explains what running processes do, and whose it is. */
export interface PolicyInUse {
  readonly policy: LoadedPolicy;
  /** `process`: published by running processes. `command`: as this command reads it. */
  readonly source: "process" | "command";
  /** The processes that use it; empty for that of the command. */
  readonly pids: readonly number[];
  /** Running processes that use another policy. */
  readonly otherPids: readonly number[];
}

/**
 * The policy of the running processes; if they differ, of the one with the most recent status. The policy of the command
 * if none is published, or if flags of the command change it.
 */
export async function policyInUse(connection: StoreConnection | NoStoreConnection, flags: Flags): Promise<PolicyInUse> {
  const ofCommand: PolicyInUse = { policy: connection.policy, source: "command", pids: [], otherPids: [] };
  const isChanged = ROLE_FLAGS.some(flag => flags[flag] !== undefined);
  if ("problem" in connection || isChanged) return ofCommand;
  try {
    const [first, ...others] = await connection.observer.policies();
    const pids = (running: typeof others) => running.flatMap(({ processes }) => processes.map(({ pid }) => pid));
    if (first === undefined) return ofCommand;
    return { policy: first.policy, source: "process", pids: pids([first]), otherPids: pids(others) };
  } catch (error) {
    if (isDocstokgError(error) && error.code === "DOCSTOKG_STORE") return ofCommand;
    throw error;
  }
}

/** `of process 4711`, for a fact in the output. */
export function policySourceText({ source, pids, otherPids }: PolicyInUse): string {
  if (source === "command") return "of this command";
  const others = otherPids.length === 0 ? "" : `; process ${otherPids.join(", ")} uses another policy`;
  return `of process ${pids.join(", ")}${others}`;
}
