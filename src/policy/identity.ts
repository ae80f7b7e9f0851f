import { isLoopback } from "../core/text/host.ts";
import { withoutPort } from "./routing.ts";

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

export type FieldPart = "query" | "headers";

/**
 * The placeholders (keys, `mailto`, `tool`) whose values a request carries. They decide which limits `with` a key apply
 * to it.
 */
export type SentKeys = ReadonlySet<string>;

export const NO_KEYS: SentKeys = new Set();

/** Where a connection goes. */
export interface Destination {
  /** A canonical host without its port. */
  readonly host: string;
  readonly port: number;
  readonly isHttps: boolean;
}

/** The identification of requests to one host, or to the members of one service. */
export interface Identity {
  /** Holds for this path and the paths below it; `/` for all. */
  readonly path: string;
  /** True when the policy names the host with its port. */
  readonly namesPort: boolean;
  /** True for a host that the file removes: it gets no field, also none of its service. */
  readonly isRemoved: boolean;
  /**
   * The names of fields that are not sent, because the file removes them or a placeholder has no value. The fields of the
   * service with these names are not sent either.
   */
  readonly withheld: Readonly<Record<FieldPart, readonly string[]>>;
  readonly query: readonly IdentityField[];
  /** With lower-case names. */
  readonly headers: readonly IdentityField[];
  /** The names of all placeholders in its templates, also of those without a value. */
  readonly placeholders: readonly string[];
}

/** The service that owns a request, and the path of the member that contains the request; empty for the whole host. */
export interface OwningService {
  readonly service: string | undefined;
  readonly writtenPath: string;
}

const NO_SERVICE: OwningService = { service: undefined, writtenPath: "" };

/** The identification of requests, by host and by service. */
export class Identities {
  readonly #byHost: ReadonlyMap<string, Identity>;
  readonly #byService: ReadonlyMap<string, Identity>;
  readonly #mailto: string | undefined;
  /** Every host with an identity for one of its paths, without its port: few hosts, asked for each request. */
  readonly #splitHosts: ReadonlySet<string>;

  constructor(
    byHost: ReadonlyMap<string, Identity>,
    byService: ReadonlyMap<string, Identity>,
    mailto: string | undefined,
  ) {
    this.#byHost = byHost;
    this.#byService = byService;
    this.#mailto = mailto;
    this.#splitHosts = new Set([...byHost].flatMap(([host, { path }]) => (path === "/" ? [] : withoutPort(host))));
  }

  get mailto(): string | undefined {
    return this.#mailto;
  }

  /** The hosts that get fields beside the User-Agent. */
  get hosts(): readonly string[] {
    return [...this.#byHost].filter(([, { isRemoved }]) => !isRemoved).map(([host]) => host);
  }

  /** The services whose members get fields. */
  get services(): readonly string[] {
    return [...this.#byService.keys()];
  }

  /** Every host and service with its identity, by its keys in `identities.yaml`. */
  *entries(): Iterable<readonly [keys: string, identity: Identity]> {
    for (const [host, identity] of this.#byHost) yield [`hosts.${host}`, identity];
    for (const [service, identity] of this.#byService) yield [`services.${service}`, identity];
  }

  /** The identity of a canonical host by itself. A port counts only where the policy names it. */
  of(host: string, port: number): Identity | undefined {
    const identity = this.#entryOf(host, port);
    return identity?.isRemoved ? undefined : identity;
  }

  /**
   * The identities of requests to a canonical host and path: that of the service, then that of the host, whose fields
   * win.
   */
  at(host: string, port: number, path: string, owner: OwningService = NO_SERVICE): readonly Identity[] {
    return this.#matching(this.#entryOf(host, port), path, owner);
  }

  /**
   * The keys that requests to a destination and path carry, unless their callers set the header fields themselves.
   * @param own the parameters that the URL has already
   */
  keysTo(destination: Destination, path: string, owner: OwningService, own = new URLSearchParams()): SentKeys {
    const { host, port } = destination;
    const [query, headers] = sentFields(this.at(host, port, path, owner), destination);
    return keysOf([...query.filter(field => isParameterSent(field.name, field.reveal(), own)), ...headers]);
  }

  /**
   * The same for a host as the limits name it: without a port the standard port of https is meant. The scheme is assumed
   * to be https at every port, because a name has none.
   */
  keysAt(name: string, path: string, owner: OwningService): SentKeys {
    return this.keysTo({ ...hostAndPort(name), isHttps: true }, path, owner);
  }

  /** The same over http, where no secrets are sent except on this machine. */
  plainKeysAt(name: string, path: string, owner: OwningService): SentKeys {
    return this.keysTo({ ...hostAndPort(name), isHttps: false }, path, owner);
  }

  /** The placeholders whose values requests to a host carry, on some path. */
  sentTo(name: string, service: string | undefined): ReadonlySet<string> {
    const destination = { ...hostAndPort(name), isHttps: true };
    // One identity at a time: the paths of the two may differ.
    const sent = this.#ofHostAndService(name, service).flatMap(identity => sentFields([identity], destination));
    return keysOf(sent.flat());
  }

  /** The placeholders in the templates of a host and its service that it may get, also those without a value. */
  wantedBy(name: string, service: string | undefined): ReadonlySet<string> {
    const destination = { ...hostAndPort(name), isHttps: true };
    const wanted = this.#ofHostAndService(name, service).flatMap(identity =>
      identity.placeholders.filter(each => PUBLIC_PLACEHOLDERS.has(each) || maySendSecrets(identity, destination)),
    );
    return new Set(wanted);
  }

  /** True when the identification of a host depends on the path. */
  dependsOnPath(name: string): boolean {
    return this.#splitHosts.has(withoutPort(name)) && (this.#ofName(name)?.path ?? "/") !== "/";
  }

  /** True when the identification of a service depends on how the path of its member is written. */
  dependsOnSpelling({ service, writtenPath }: OwningService): boolean {
    return writtenPath !== "" && this.#ofService(service) !== undefined;
  }

  /** Further paths of a host or member at which its requests get other fields than at the path of the member. */
  otherPaths(request: OwningService & { readonly host: string }): readonly string[] {
    return [
      ...(this.dependsOnPath(request.host) ? [this.#ofName(request.host)?.path ?? "/"] : []),
      // The same path in a spelling that gets no field of the service.
      ...(this.dependsOnSpelling(request) ? [`${request.writtenPath}/.`] : []),
    ];
  }

  #ofHostAndService(name: string, service: string | undefined): readonly Identity[] {
    const ofHost = this.#ofName(name);
    return ofHost?.isRemoved ? [] : [this.#ofService(service), ofHost].filter(identity => identity !== undefined);
  }

  /** The identity of a host as the limits name it: one of the two files may name the port, and the other not. */
  #ofName(name: string): Identity | undefined {
    const { host, port } = hostAndPort(name);
    return this.#entryOf(host, port);
  }

  #entryOf(host: string, port: number): Identity | undefined {
    return this.#byHost.get(`${host}:${port}`) ?? this.#byHost.get(host);
  }

  #ofService(service: string | undefined): Identity | undefined {
    return service === undefined ? undefined : this.#byService.get(service);
  }

  #matching(ofHost: Identity | undefined, path: string, { service, writtenPath }: OwningService): readonly Identity[] {
    const ofService = this.#ofService(service);
    const found: Identity[] = [];
    if (ofHost?.isRemoved) return found;
    if (ofService !== undefined && holdsAt(path, writtenPath || "/")) found.push(ofService);
    if (ofHost !== undefined && holdsAt(path, ofHost.path)) found.push(ofHost);
    return found;
  }
}

/** The fields that requests to a destination get, in the query and in the headers. Of two with one name, the last. */
export function sentFields(
  identities: readonly Identity[],
  destination: Destination,
): readonly [query: readonly IdentityField[], headers: readonly IdentityField[]] {
  const merged = (part: FieldPart) => {
    const byName = new Map<string, IdentityField>();
    for (const identity of identities) {
      for (const name of identity.withheld[part]) byName.delete(name);
      const maySend = maySendSecrets(identity, destination);
      for (const field of identity[part]) if (maySend || !field.isSecret) byName.set(field.name, field);
    }
    return [...byName.values()];
  };
  return [merged("query"), merged("headers")];
}

/** Whether a request carries a parameter of its identity: one that its URL has already, with another value, is kept. */
export function isParameterSent(name: string, value: string, own: URLSearchParams): boolean {
  return own.getAll(name).every(each => each === value);
}

/** The placeholders in the fields of a request. */
export function keysOf(fields: readonly Pick<IdentityField, "placeholders">[]): SentKeys {
  const keys = new Set(fields.flatMap(({ placeholders }) => placeholders));
  return keys.size === 0 ? NO_KEYS : keys;
}

/**
 * Another port of the host may belong to another service, which must not get the key. This machine is an exception, so
 * that a key can be sent to a local server of a test or a proxy at any port.
 */
function maySendSecrets({ namesPort }: Identity, { host, port, isHttps }: Destination): boolean {
  return isLoopback(host) || (isHttps && (port === HTTPS_PORT || namesPort));
}

const HTTPS_PORT = 443;
/** Their values are no secrets. */
const PUBLIC_PLACEHOLDERS: ReadonlySet<string> = new Set(["mailto", "tool"]);

/** A host as the limits name it, with the port of https unless they name another. */
function hostAndPort(name: string): { readonly host: string; readonly port: number } {
  const host = withoutPort(name);
  return { host, port: host === name ? HTTPS_PORT : Number(name.slice(host.length + 1)) };
}

function holdsAt(path: string, prefix: string): boolean {
  return prefix === "/" || isBelowPath(path, prefix);
}

/**
 * Whether a path is the prefix or lies below it; the prefix is not `/`. A path that is a whole URL goes to a proxy, which
 * may pass it to any host, so it is below no prefix. Neither is a path with dots or escaped slashes, because servers
 * resolve such a path differently.
 */
function isBelowPath(path: string, prefix: string): boolean {
  if (!path.startsWith("/")) return false;
  const base = prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
  const [plain = ""] = path.split(/[?#]/, 1);
  return (plain === base || plain.startsWith(`${base}/`)) && !/\/\.|%2e|%2f|\\/i.test(plain);
}
