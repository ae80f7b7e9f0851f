/** One header or query parameter. Its value is private, so that no log, table or error message shows it by accident. */
export class IdentityField {
  readonly name: string;
  /** False when it contains only the email address and the name of the program. Secrets are sent over https only. */
  readonly isSecret: boolean;
  readonly #value: string;
  readonly #secrets: readonly string[];

  constructor(name: string, value: string, isSecret: boolean, secrets: readonly string[]) {
    this.name = name;
    this.isSecret = isSecret;
    this.#value = value;
    this.#secrets = secrets;
  }

  reveal(): string {
    return this.#value;
  }

  /** The values of environment variables inside it. */
  revealSecrets(): readonly string[] {
    return this.#secrets;
  }
}

/** The identification of requests to one host. */
export interface HostIdentity {
  /** Holds for this path and the paths below it; `/` for all. */
  readonly path: string;
  /** True when the policy names the host with its port. */
  readonly namesPort: boolean;
  readonly query: readonly IdentityField[];
  /** With lower-case names. */
  readonly headers: readonly IdentityField[];
}

/** The identification of requests, by host. */
export class Identities {
  readonly #byHost: ReadonlyMap<string, HostIdentity>;
  readonly #mailto: string | undefined;

  constructor(byHost: ReadonlyMap<string, HostIdentity>, mailto: string | undefined) {
    this.#byHost = byHost;
    this.#mailto = mailto;
  }

  get mailto(): string | undefined {
    return this.#mailto;
  }

  /** The hosts that get fields beside the User-Agent. */
  get hosts(): readonly string[] {
    return [...this.#byHost.keys()];
  }

  /** Every host with its identity. */
  entries(): Iterable<readonly [host: string, identity: HostIdentity]> {
    return this.#byHost;
  }

  /** The identity for a canonical host. A port counts only where the policy names it. */
  of(host: string, port: number): HostIdentity | undefined {
    return this.#byHost.get(`${host}:${port}`) ?? this.#byHost.get(host);
  }
}
