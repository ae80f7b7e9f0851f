import type { BreakersOptions } from "./breaker-options.ts";
import { configHash } from "./config-hash.ts";
import { type ExplainedValue, explainPolicy, explainSettings } from "./explanation.ts";
import { lintPolicy } from "./lint.ts";
import { loadPolicy as loadInternalPolicy, type PolicySources } from "./load.ts";
import { type PolicyRow, policyRows } from "./policy-row.ts";
import type { RatelimitsOptions } from "./ratelimit-options.ts";
import type { Role } from "./roles.ts";

/** A policy that was loaded and checked: files, environment and flags together. */
export interface Policy {
  /** The merged rate limits. */
  readonly ratelimits: {
    /** In the shape of `ratelimits.yaml`; `new RateLimiter()` accepts them. */
    readonly options: RatelimitsOptions;
  };
  /** The merged breaker settings. */
  readonly breakers: {
    /** In the shape of `breakers.yaml`; `new BreakerRegistry()` accepts them. */
    readonly options: BreakersOptions;
  };
  /** Hash of the policy, 16 hexadecimal digits. Equal policies have the same hash. Events contain it as `config_hash`. */
  readonly configHash: string;
  /** The effective settings of every listed host and service, and of all other hosts: `docstokg policy show`. */
  rows(): readonly PolicyRow[];
  /**
   * Where each value for a host and role comes from: `docstokg policy explain`. Pass the path for a host
   * whose paths belong to different services. Throws a RangeError if `host` is not a valid host name.
   */
  explain(host: string, role?: Role, path?: string): readonly ExplainedValue[];
  /**
   * Valid settings that probably do not have the intended effect. `docstokg policy check` prints these, and unknown
   * environment variables too.
   */
  warnings(): readonly string[];
}

/**
 * Loads the policy: shipped files, then the user's files or objects, then environment, then flags; a later source wins,
 * field by field. Rejects with one ConfigError with the problems of all sources. If each source is valid but the merged
 * values are not, it may list only the first problem.
 */
export async function loadPolicy(sources: PolicySources = {}): Promise<Policy> {
  const loaded = await loadInternalPolicy(sources);
  return {
    ratelimits: { options: loaded.ratelimits.options },
    breakers: { options: loaded.breakers.options },
    configHash: configHash(loaded),
    rows: () => policyRows(loaded),
    explain: (host, role = "metadata", path) => [
      ...explainPolicy(loaded, host, role, path),
      ...explainSettings(loaded),
    ],
    warnings: () =>
      lintPolicy(loaded)
        .filter(({ severity }) => severity === "warning")
        .map(({ message }) => message),
  };
}
