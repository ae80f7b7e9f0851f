import { configHash } from "../policy/config-hash.ts";
import { type LoadedPolicy, loadPolicy } from "../policy/load.ts";
import { HostNames } from "./host-names.ts";
import type { HubOptions, PolicyOptions } from "./hub-options.ts";
import { PACKAGE_VERSION } from "./package-version.ts";
import { CallerIdentity } from "./stages/caller-identity.ts";

type Sources = Pick<HubOptions, "policy" | "env" | "overrides" | "mailto" | "userAgent">;

/** The loaded policy of a hub and what is derived from it. A reload replaces all of it, or nothing when it fails. */
export class HubPolicy {
  readonly #sources: Sources;
  #current: HubPolicyState;

  private constructor(sources: Sources, current: HubPolicyState) {
    this.#sources = sources;
    this.#current = current;
  }

  /** Throws a ConfigError that lists every problem. */
  static async load(sources: Sources): Promise<HubPolicy> {
    return new HubPolicy(sources, await load(sources));
  }

  async reload(policy: PolicyOptions | undefined): Promise<void> {
    this.#current = await load(policy === undefined ? this.#sources : { ...this.#sources, policy });
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

  get callerIdentity(): CallerIdentity {
    return this.#current.callerIdentity;
  }
}

interface HubPolicyState {
  readonly loaded: LoadedPolicy;
  readonly configHash: string;
  readonly hostNames: HostNames;
  readonly callerIdentity: CallerIdentity;
}

async function load({
  policy = {},
  env = process.env,
  overrides,
  mailto,
  userAgent,
}: Sources): Promise<HubPolicyState> {
  const { ratelimits, breakers, identities } = policy;
  const loaded = await loadPolicy({ ratelimits, breakers, identities, mailto, env, overrides });
  return {
    loaded,
    configHash: configHash(loaded),
    hostNames: new HostNames(loaded),
    callerIdentity: new CallerIdentity({ identities: loaded.identities, version: PACKAGE_VERSION, userAgent }),
  };
}
