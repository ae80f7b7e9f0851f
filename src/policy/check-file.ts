import { basename } from "node:path";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { unknownVariables } from "./environment.ts";
import { readFileLayer } from "./file-layer.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import type { Assignment } from "./layer.ts";
import { lintPolicy } from "./lint.ts";
import { loadPolicy, type PolicySources } from "./load.ts";

type PolicyFileKind = "ratelimits" | "breakers" | "identities";

/** The result of `docstokg policy check`. */
export interface PolicyCheck {
  readonly problems: readonly ConfigProblem[];
  /** Valid settings that probably do not have the intended effect, unknown environment variables, and hints. */
  readonly findings: readonly PolicyFinding[];
}

/** Keys that only breakers.yaml has. */
const BREAKER_KEYS: ReadonlySet<string> = new Set([
  "advanced",
  "resolvers",
  "fail_max",
  "reset_timeout_s",
  "classify",
  "half_open",
]);

/**
 * Checks the effective policy: files, environment and flags together.
 * @param nowMs the time, to judge the age of the numbers
 */
export async function checkPolicy(sources: PolicySources, nowMs?: number): Promise<PolicyCheck> {
  const { env = {} } = sources;
  const problems: ConfigProblem[] = [];
  const collected = async <Value>(load: () => Promise<Value>): Promise<Value | undefined> => {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const policy = await collected(() => loadPolicy(sources));
  const unknown = unknownVariables(env).map(message => warning("unknown-variable", message));
  return { problems, findings: [...(policy === undefined ? [] : lintPolicy(policy, nowMs)), ...unknown] };
}

/** Checks the effective policy with this file in the place of the user's own file of its kind. */
export async function checkFile(
  file: string,
  sources: PolicySources = {},
  nowMs?: number,
): Promise<PolicyCheck & { readonly kind: PolicyFileKind }> {
  const { assignments } = await readFileLayer(file);
  const kind = kindOf(file, assignments);
  return { kind, ...(await checkPolicy({ ...sources, [kind]: file }, nowMs)) };
}

/** By the file's name, or else by keys that only one kind of file has. */
function kindOf(file: string, assignments: readonly Assignment[]): PolicyFileKind {
  const name = basename(file);
  if (/breaker/i.test(name)) return "breakers";
  if (/ratelimit/i.test(name)) return "ratelimits";
  if (/identit/i.test(name)) return "identities";
  if (assignments.some(({ path: [first, , key] }) => first === "hosts" && (key === "query" || key === "headers")))
    return "identities";
  return assignments.some(({ path }) => keysOf(path).some(key => BREAKER_KEYS.has(key))) ? "breakers" : "ratelimits";
}

/** Without the name of a host or service, which may be equal to a key. */
function keysOf([first = "", second, ...others]: readonly string[]): readonly string[] {
  const isNamed = first === "hosts" || first === "services" || first === "groups";
  return isNamed || second === undefined ? [first, ...others] : [first, second, ...others];
}
