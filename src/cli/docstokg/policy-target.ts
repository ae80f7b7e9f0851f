import type { LoadedPolicy } from "../../policy/load.ts";
import { type PolicyTarget, policyTarget } from "../../policy/target.ts";
import { usageError } from "../usage-error.ts";

/**
 * The host and path that a user names. Throws a usage error for any other text.
 * @param flag the flag or argument that has the text
 */
export function targetOf(policy: LoadedPolicy, text: string, flag: string): PolicyTarget {
  try {
    return policyTarget(policy, text);
  } catch (error) {
    if (error instanceof RangeError) throw usageError(flag, error.message);
    throw error;
  }
}
