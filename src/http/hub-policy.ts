import { createRequire } from "node:module";
import { configHash } from "../policy/config-hash.ts";
import { loadIdentities } from "../policy/identities.ts";
import { type LoadedPolicy, loadPolicy } from "../policy/load.ts";
import { HostNames } from "./host-names.ts";
import type { HubOptions, PolicyOptions } from "./hub-options.ts";
import { Identifier } from "./stages/caller-identity.ts";

const { version } = createRequire(import.meta.url)("../../package.json") as { readonly version: string };

type Sources = Pick<HubOptions, "policy" | "env" | "overrides" | "mailto" | "userAgent">;

/** What a hub goes by, and what follows from it. A reload replaces all of it, or nothing. */
export class HubPolicy {
  readonly #sources: Sources;
  #current: Current;

  private constructor(sources: Sources, current: Current) {
    this.#sources = sources;
    this.#current = current;
  }

  /** Throws a ConfigError that lists everything wrong with it. */
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

  get identifier(): Identifier {
    return this.#current.identifier;
  }
}

interface Current {
  readonly loaded: LoadedPolicy;
  readonly configHash: string;
  readonly hostNames: HostNames;
  readonly identifier: Identifier;
}

async function load({ policy = {}, env = process.env, overrides, mailto, userAgent }: Sources): Promise<Current> {
  const { ratelimits, breakers, identities } = policy;
  const loaded = await loadPolicy({ ratelimits, breakers, env, overrides });
  return {
    loaded,
    configHash: configHash(loaded),
    hostNames: new HostNames(loaded),
    identifier: new Identifier({
      identities: await loadIdentities({ identities, env, mailto }),
      version,
      userAgent,
    }),
  };
}
