import { configHash } from "../policy/config-hash.ts";
import { DecidedBySettings } from "../policy/decided-by.ts";
import { identityChanges } from "../policy/identity-changes.ts";
import { type LoadedPolicy, loadPolicy } from "../policy/load.ts";
import { type PolicyChange, policyChanges } from "../policy/policy-changes.ts";
import { HostNames } from "./host-names.ts";
import type { HubOptions, PolicyOptions } from "./hub-options.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import { CallerIdentity } from "./stages/caller-identity.ts";

type Sources = Pick<
  HubOptions,
  "policy" | "env" | "overrides" | "mailto" | "userAgent" | "whenStoreAway" | "fleetSize"
>;

/** The loaded policy of a hub and what is derived from it. A reload replaces all of it, or nothing when it fails. */
export class HubPolicy {
  #sources: Sources;
  #current: HubPolicyState;

  private constructor(sources: Sources, current: HubPolicyState) {
    this.#sources = sources;
    this.#current = current;
  }

  /** Throws a ConfigError that lists every problem. */
  static async load(sources: Sources): Promise<HubPolicy> {
    return new HubPolicy(sources, await load(sources));
  }

  /**
   * Loads the policy again, or `policy` in its place, for this reload and later ones. Nothing changes before `apply`,
   * so that the caller can check the loaded policy first.
   */
  async prepareReload(policy: PolicyOptions | undefined): Promise<PreparedReload> {
    const sources = policy === undefined ? this.#sources : { ...this.#sources, policy };
    const next = await load(sources);
    return {
      loaded: next.loaded,
      apply: () => {
        const changes = [
          ...policyChanges(this.#current.loaded, next.loaded),
          ...identityChanges(this.#current.loaded.identities, next.loaded.identities),
        ];
        this.#sources = sources;
        this.#current = next;
        return changes;
      },
    };
  }

  get loaded(): LoadedPolicy {
    return this.#current.loaded;
  }

  get configHash(): string {
    return this.#current.configHash;
  }

  get hostNames(): HostNames {
    return this.#current.hostNames;
  }

  /** The settings behind waits and refusals. */
  get decidedBy(): DecidedBySettings {
    return this.#current.decidedBy;
  }

  get callerIdentity(): CallerIdentity {
    return this.#current.callerIdentity;
  }
}

/** A policy that was loaded and is not yet in force. */
export interface PreparedReload {
  readonly loaded: LoadedPolicy;
  /** Puts it in force. Returns what changed. */
  readonly apply: () => readonly PolicyChange[];
}

interface HubPolicyState {
  readonly loaded: LoadedPolicy;
  readonly configHash: string;
  readonly hostNames: HostNames;
  readonly decidedBy: DecidedBySettings;
  readonly callerIdentity: CallerIdentity;
}

async function load({
  policy = {},
  env = process.env,
  overrides,
  mailto,
  userAgent,
  whenStoreAway,
  fleetSize,
}: Sources): Promise<HubPolicyState> {
  const { ratelimits, breakers, identities } = policy;
  const flags = {
    ...overrides,
    whenStoreAway: whenStoreAway ?? overrides?.whenStoreAway,
    fleetSize: fleetSize ?? overrides?.fleetSize,
  };
  const loaded = await loadPolicy({ ratelimits, breakers, identities, mailto, env, overrides: flags });
  let hash: string | undefined;
  return {
    loaded,
    // Made on first use: a program without listeners and without a shared store never reads it.
    get configHash() {
      hash ??= configHash(loaded);
      return hash;
    },
    hostNames: new HostNames(loaded),
    decidedBy: new DecidedBySettings(loaded),
    callerIdentity: new CallerIdentity({
      identities: loaded.identities,
      routing: loaded.ratelimits.resolved.routing,
      version: PACKAGE_VERSION,
      userAgent,
    }),
  };
}
