import { ConfigError, type ConfigProblem } from "../errors.ts";
import { unknownVariables } from "./environment.ts";
import { fileKind, type PolicyFileKind } from "./file-kind.ts";
import { readFileLayer } from "./file-layer.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import { lintPolicy } from "./lint.ts";
import { type LoadedPolicy, loadPolicy, type PolicySources } from "./load.ts";

/** The result of `docstokg policy check`. */
export interface PolicyCheck {
  readonly problems: readonly ConfigProblem[];
  /** Valid settings that probably do not have the intended effect, unknown environment variables, and hints. */
  readonly findings: readonly PolicyFinding[];
}

/** The result for several files. */
export interface PolicyFilesCheck extends PolicyCheck {
  readonly files: readonly { readonly file: string; readonly kind: PolicyFileKind }[];
}

export interface PolicyCheckOptions {
  /** The time, to judge the age of the numbers. @default their age is not judged */
  readonly nowMs?: number | undefined;
  /** Throws a ConfigError if a hub cannot use the stores of the policy. @default stores are not checked */
  readonly checkStores?: ((policy: LoadedPolicy) => void) | undefined;
}

/** Checks the effective policy: files, environment and flags together. */
export async function checkPolicy(
  sources: PolicySources,
  { nowMs, checkStores }: PolicyCheckOptions = {},
): Promise<PolicyCheck> {
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
  if (policy !== undefined) await collected(async () => checkStores?.(policy));
  const unknown = unknownVariables(env).map(message => warning("unknown-variable", message));
  return { problems, findings: [...(policy === undefined ? [] : lintPolicy(policy, nowMs)), ...unknown] };
}

/**
 * Checks the effective policy with these files in the place of the user's own ones. Files of different kinds are checked
 * together: breakers and identities may name services of the limits. Several files of one kind are checked one after
 * the other, each with the files of the other kinds.
 */
export async function checkFiles(
  names: readonly string[],
  sources: PolicySources = {},
  options?: PolicyCheckOptions,
): Promise<PolicyFilesCheck> {
  const files = await Promise.all(
    names.map(async file => ({ file, kind: fileKind(file, (await readFileLayer(file)).assignments) })),
  );
  const byKind = [...Map.groupBy(files, ({ kind }) => kind)];
  const problems = new Map<string, ConfigProblem>();
  const findings = new Map<string, PolicyFinding>();
  const rounds = Math.max(1, ...byKind.map(([, ofKind]) => ofKind.length));
  for (let round = 0; round < rounds; round += 1) {
    const own = byKind.map(([kind, ofKind]) => [kind, (ofKind[round] ?? ofKind.at(-1))?.file]);
    const found = await checkPolicy({ ...sources, ...Object.fromEntries(own) }, options);
    for (const problem of found.problems) problems.set(JSON.stringify(problem), problem);
    for (const finding of found.findings) findings.set(finding.message, finding);
  }
  return { files, problems: [...problems.values()], findings: [...findings.values()] };
}
