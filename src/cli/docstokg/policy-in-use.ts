import { isDocstokgError } from "../../errors.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import type { Flags } from "../program.ts";
import { ROLE_FLAGS } from "./policy-flags.ts";
import type { NoStoreConnection, StoreConnection } from "./store-connection.ts";

/** The policy with which a command explains what running processes do, and where the policy comes from. */
export interface PolicyInUse {
  readonly policy: LoadedPolicy;
  /** `process`: published by running processes. `command`: as this command reads it. */
  readonly source: "process" | "command";
  /** The processes that use the policy; empty for the policy of the command. */
  readonly pids: readonly number[];
  /** Running processes that use another policy. */
  readonly otherPids: readonly number[];
}

/**
 * The policy of the running processes. If these differ, the policy of the process with the most recent status. If no
 * process has published its policy, flags change the policy, or the store cannot be read: the policy of the command.
 */
export async function policyInUse(connection: StoreConnection | NoStoreConnection, flags: Flags): Promise<PolicyInUse> {
  const ofCommand: PolicyInUse = { policy: connection.policy, source: "command", pids: [], otherPids: [] };
  const isChanged = ROLE_FLAGS.some(flag => flags[flag] !== undefined);
  if ("problem" in connection || isChanged) return ofCommand;
  try {
    const [first, ...others] = await connection.observer.policies();
    const pidsOf = (running: typeof others) => running.flatMap(({ processes }) => processes.map(({ pid }) => pid));
    if (first === undefined) return ofCommand;
    return { policy: first.policy, source: "process", pids: pidsOf([first]), otherPids: pidsOf(others) };
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
