import { type LoadedPolicy, loadPolicy, type PolicySources } from "../../policy/load.ts";
import { terminalWidth } from "../output/table.ts";
import type { Io } from "../program.ts";
import { compactPolicy } from "./policy-table.ts";

/**
 * Prints the effective policy on stderr if NODE_DEBUG, a comma-separated list, contains docstokg. Returns the policy
 * that was printed.
 */
export async function printDebugPolicy(
  { env, stderr }: Pick<Io, "env" | "stderr">,
  sources: () => Promise<PolicySources>,
): Promise<LoadedPolicy | undefined> {
  const names = (env["NODE_DEBUG"] ?? "").split(",").map(name => name.trim().toLowerCase());
  if (!names.includes("docstokg")) return undefined;
  const policy = await loadPolicy(await sources());
  stderr.write(compactPolicy(policy, terminalWidth(stderr)));
  return policy;
}
