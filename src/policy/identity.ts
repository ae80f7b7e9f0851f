/** One header or query parameter. Its value is private, so that no log, table or error message shows it by accident. */
export class IdentityField {
  readonly name: string;
  /** False when it contains only the email address and the name of the program. Secrets are sent over https only. */
  readonly isSecret: boolean;
  /** The names of the placeholders in its template: `mailto`, `tool` or an environment variable. */
  readonly placeholders: readonly string[];
  readonly #value: string;
  readonly #secrets: readonly string[];

  constructor(
    name: string,
    value: string,
    isSecret: boolean,
    secrets: readonly string[],
    placeholders: readonly string[] = [],
  ) {
    this.name = name;
    this.isSecret = isSecret;
    this.placeholders = placeholders;
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
  /** The names of all placeholders in its templates, also of those without a value. */
  readonly placeholders: readonly string[];
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

  /** Whether requests to a host and path carry the value of a placeholder. A host without a port is the https one. */
  sends(host: string, path: string, placeholder: string): boolean {
    const identity = this.#byHost.get(host);
    if (identity === undefined || !fieldsOf(identity).some(field => field.placeholders.includes(placeholder)))
      return false;
    return identity.path === "/" || isBelowPath(path, identity.path);
  }

  /** The placeholders whose values requests to a host carry, on some path. */
  sentTo(host: string): ReadonlySet<string> {
    const identity = this.#byHost.get(host);
    return new Set(identity === undefined ? [] : fieldsOf(identity).flatMap(field => field.placeholders));
  }

  /** The placeholders whose values requests to some host carry. */
  get sent(): ReadonlySet<string> {
    return new Set(this.hosts.flatMap(host => [...this.sentTo(host)]));
  }

  /** The placeholders in the templates of a host, also those without a value. */
  wantedBy(host: string): ReadonlySet<string> {
    return new Set(this.#byHost.get(host)?.placeholders);
  }

  /** True when the identification of a host depends on the path. */
  isSplit(host: string): boolean {
    return (this.#byHost.get(host)?.path ?? "/") !== "/";
  }
}

function fieldsOf({ query, headers }: HostIdentity): readonly IdentityField[] {
  return [...query, ...headers];
}

/**
 * Whether a path is the prefix or lies below it. A path that is a whole URL goes to a proxy, which may pass it to any
 * host, so it is below nothing. A path with dots or escaped slashes is below nothing but the root, because servers
 * resolve such a path differently.
 */
export function isBelowPath(path: string, prefix: string): boolean {
  if (!path.startsWith("/")) return false;
  if (prefix === "/") return true;
  const base = prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
  const [plain = ""] = path.split(/[?#]/, 1);
  return (plain === base || plain.startsWith(`${base}/`)) && !/\/\.|%2e|%2f|\\/i.test(plain);
}
