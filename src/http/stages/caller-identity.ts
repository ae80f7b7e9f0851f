import { urlHost } from "../../core/text/host.ts";
import type { Identities, IdentityField } from "../../policy/identity.ts";
import type { OutgoingRequest, ResponseHead } from "./stage.ts";
import { type Parameter, withoutParameters, withParameters } from "./url-query.ts";

/** What runtimes and clients call themselves when nobody has said anything. */
const DEFAULT_USER_AGENTS = /^(?:node|undici|axios\/[\w.-]+)$/;

/** More origins than a program calls at a time, few enough that a crawler does not fill the memory with them. */
const ORIGINS_MAX = 1024;

/** A shorter secret may well be part of an innocent word, and is looked for as a whole. */
const SECRET_SUBSTRING_LENGTH_MIN = 8;

export interface CallerIdentityOptions {
  readonly identities: Identities;
  /** Of this package, as its package.json says it. */
  readonly version: string;
  /** @default `docstokg/<version> (mailto:<address>)`, without the parentheses when no address is known */
  readonly userAgent?: string | undefined;
}

/** What is told to one origin. */
interface OriginIdentity {
  readonly path: string;
  readonly query: readonly QueryField[];
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  readonly secrets: readonly string[];
}

interface QueryField extends Parameter {
  readonly value: string;
}

/**
 * Tells each host who calls, and nobody else. It stands next to the wire: what it adds is in no cache, in no event and
 * in no URL that a caller sees, and it is worked out anew for each hop of a redirect.
 */
export class CallerIdentity {
  readonly #identities: Identities;
  /** What everybody is told. */
  readonly #defaultIdentity: OriginIdentity;
  readonly #byOrigin = new Map<string, OriginIdentity>();

  /** Throws a RangeError when the User-Agent cannot be sent. */
  constructor({ identities, version, userAgent }: CallerIdentityOptions) {
    const { mailto } = identities;
    this.#identities = identities;
    const agent = userAgent ?? `docstokg/${version}${mailto === undefined ? "" : ` (mailto:${mailto})`}`;
    if (!/^[!-~](?:[ -~]*[!-~])?$/.test(agent)) {
      throw new RangeError("userAgent must be printable ASCII without blanks at its ends");
    }
    this.#defaultIdentity = { path: "/", query: [], headers: ["user-agent", agent], secrets: [] };
  }

  /** The request as it goes out: with all that its host wants to know and its caller has not said himself. */
  apply<Request extends Pick<OutgoingRequest, "origin" | "path" | "headers">>(request: Request): Request {
    const originIdentity = this.#originIdentityFor(request);
    const path = withParameters(request.path, originIdentity.query);
    const headers = withFields(request.headers, originIdentity.headers);
    return path === request.path && headers === request.headers ? request : { ...request, path, headers };
  }

  /**
   * The answer as others may see it. Servers repeat the query of a request in the Location of a redirect; what we had
   * put there is taken out, or a client that follows it would carry a key to another host, or into a log. Where it
   * belongs, `applied` puts it back. The request may be the one before or after `applied`.
   */
  scrub(head: ResponseHead, request: Pick<OutgoingRequest, "origin" | "path">): ResponseHead {
    const location = head.headers["location"];
    if (location === undefined || head.status < 300 || head.status > 399) return head;
    const originIdentity = this.#originIdentityFor(request);
    if (originIdentity === this.#defaultIdentity) return head;
    const given = typeof location === "string" ? [location] : location;
    const clean = given.map(text => withoutParameters(text, (name, value) => isOurs(name, value, originIdentity)));
    if (clean.every((text, index) => text === given[index])) return head;
    const headers = { ...head.headers, location: clean.length === 1 ? clean.join("") : clean };
    return { ...head, headers, rawHeaders: headers };
  }

  #originIdentityFor({ origin, path }: Pick<OutgoingRequest, "origin" | "path">): OriginIdentity {
    let known = this.#byOrigin.get(origin);
    if (known === undefined) {
      known = this.#createOriginIdentity(origin);
      if (this.#byOrigin.size >= ORIGINS_MAX) {
        for (const oldest of this.#byOrigin.keys()) {
          this.#byOrigin.delete(oldest);
          break;
        }
      }
      this.#byOrigin.set(origin, known);
    }
    return known === this.#defaultIdentity || isBelow(path, known.path) ? known : this.#defaultIdentity;
  }

  #createOriginIdentity(origin: string): OriginIdentity {
    const { host, port, isHttps } = hostOf(origin);
    const identity = this.#identities.of(host, port);
    if (identity === undefined) return this.#defaultIdentity;

    // At another port of the host there may be another service, and it need not be the same people's.
    const isSafe = isLoopback(host) || (isHttps && (port === 443 || identity.namesPort));
    const maySend = (field: IdentityField) => isSafe || !field.isSecret;
    const query = identity.query.filter(maySend).map(field => {
      const value = field.reveal();
      return { name: field.name, value, text: `${encodeURIComponent(field.name)}=${encodeURIComponent(value)}` };
    });
    const headers = identity.headers.filter(maySend);
    const names = headers.map(({ name }) => name);
    return {
      path: identity.path,
      query,
      headers: [
        ...headers.flatMap(field => [field.name, field.reveal()]),
        ...(names.includes("user-agent") ? [] : this.#defaultIdentity.headers),
      ],
      secrets: [...identity.query.filter(maySend), ...headers].flatMap(field => field.revealSecrets()),
    };
  }
}

/** What is no address of ours is nobody's: whoever dials it will say what is wrong with it. */
function hostOf(origin: string): { readonly host: string; readonly port: number; readonly isHttps: boolean } {
  try {
    return { ...urlHost(origin), isHttps: URL.parse(origin)?.protocol === "https:" };
  } catch (error) {
    if (error instanceof RangeError) return { host: "", port: 0, isHttps: false };
    throw error;
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether a path is the prefix or lies below it. A request whose path is a whole URL is for a proxy, which would hand
 * it on: it is below nothing. Nor is one with dots or escapes below anything but the root: where such a path leads is
 * the server's to say.
 */
function isBelow(path: string, prefix: string): boolean {
  if (!path.startsWith("/")) return false;
  if (prefix === "/") return true;
  const base = prefix.endsWith("/") ? prefix.slice(0, -1) : prefix;
  const [plain = ""] = path.split(/[?#]/, 1);
  return (plain === base || plain.startsWith(`${base}/`)) && !/\/\.|%2e|%2f|\\/i.test(plain);
}

/** The fields themselves when nothing is missing: this runs for every request. */
function withFields(fields: readonly string[], wanted: readonly string[]): readonly string[] {
  let changed: string[] | undefined;
  for (let index = 0; index + 1 < wanted.length; index += 2) {
    const name = wanted[index] ?? "";
    const value = wanted[index + 1] ?? "";
    const at = indexOfName(fields, name);
    if (at === -1) {
      changed ??= [...fields];
      changed.push(name, value);
    } else if (name === "user-agent" && DEFAULT_USER_AGENTS.test(fields[at + 1] ?? "")) {
      changed ??= [...fields];
      changed[at + 1] = value;
    }
  }
  return changed ?? fields;
}

/** Where a name stands, or -1; values stand between the names. */
function indexOfName(fields: readonly string[], name: string): number {
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === name) return at;
  return -1;
}

/** By name and value; a secret in any parameter, because it may come back inside a URL inside the URL. */
function isOurs(name: string, value: string, { query, secrets }: OriginIdentity): boolean {
  if (query.some(field => field.name === name && field.value === value)) return true;
  const text = `${name}=${value}`;
  const inner = unescaped(text);
  return secrets.some(
    secret =>
      value === secret ||
      name === secret ||
      (secret.length >= SECRET_SUBSTRING_LENGTH_MIN && (text.includes(secret) || inner.includes(secret))),
  );
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}
