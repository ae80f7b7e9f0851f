import { urlHost } from "../../core/text/host.ts";
import { quote } from "../../core/text/quote.ts";
import { RedirectError } from "../../errors.ts";
import {
  type Destination,
  type Identities,
  type Identity,
  type IdentityField,
  isParameterSent,
  keysOf,
  NO_KEYS,
  type SentKeys,
  sentFields,
} from "../../policy/identity.ts";
import type { Routing } from "../../policy/routing.ts";
import type { OutgoingRequest, ResponseHead, SentFields } from "./stage.ts";

/** User-Agents that HTTP clients send by default; they are replaced. */
const DEFAULT_USER_AGENTS = /^(?:node|undici|axios\/[\w.-]+)$/;

/** Bounds the memory for a crawler that calls very many origins. */
const ORIGINS_MAX = 1024;

/** A shorter secret may be part of an ordinary word, so only a value that equals it is removed. */
const SECRET_SUBSTRING_LENGTH_MIN = 8;

export interface CallerIdentityOptions {
  readonly identities: Identities;
  /** Which service owns a request. @default no service owns any */
  readonly routing?: Routing | undefined;
  /** The version of docstokg. */
  readonly version: string;
  /** @default `docstokg/<version> (mailto:<address>)`, without the parentheses when no address is known */
  readonly userAgent?: string | undefined;
}

/** The identification that is added to requests. */
interface AddedFields {
  readonly query: readonly QueryField[];
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  /** The keys in them. */
  readonly sentKeys: SentKeys;
  /** The headers among them that contain keys. */
  readonly keyHeaders: readonly IdentityField[];
  readonly secrets: readonly string[];
  /** The names of the headers that contain secrets. */
  readonly secretHeaders: readonly string[];
}

/** An origin, and what was added to its requests so far. */
interface Origin extends Destination {
  /** The host as the policy names it. */
  readonly name: string;
  /** True when no identity can apply. */
  readonly hasNoIdentity: boolean;
  /** At most one for each service of its paths, with and without the identity of the host. */
  readonly variants: { readonly identities: readonly Identity[]; readonly added: AddedFields }[];
}

interface QueryField extends Parameter, Pick<IdentityField, "placeholders"> {
  readonly value: string;
}

/**
 * Adds to each request the identification that its host wants (User-Agent, address, API key), and only for that host.
 * It is applied after the cache, and again for each redirect hop. So what it adds is not in the URLs of cache entries, in
 * events or in URLs that the caller sees. The cache selects stored responses by it (cache/selection.ts).
 */
export class CallerIdentity {
  readonly #identities: Identities;
  /** For requests without an identity: the User-Agent only. */
  readonly #userAgent: AddedFields;
  readonly #routing: Routing | undefined;
  readonly #origins = new Map<string, Origin>();

  /** Throws a RangeError when the User-Agent cannot be sent. */
  constructor({ identities, routing, version, userAgent }: CallerIdentityOptions) {
    const { mailto } = identities;
    this.#identities = identities;
    this.#routing = identities.services.length === 0 ? undefined : routing;
    const agent = userAgent ?? `docstokg/${version}${mailto === undefined ? "" : ` (mailto:${mailto})`}`;
    if (!/^[!-~](?:[ -~]*[!-~])?$/.test(agent)) {
      throw new RangeError(
        `userAgent must be printable ASCII and must not begin or end with a space, not ${quote(agent)}`,
      );
    }
    const headers = ["user-agent", agent];
    this.#userAgent = { query: [], headers, sentKeys: NO_KEYS, keyHeaders: [], secrets: [], secretHeaders: [] };
  }

  /**
   * Path and headers of a request with the identification of its host; the same strings and arrays if that adds nothing.
   * Headers and parameters that the caller has set are kept.
   */
  apply(request: Pick<OutgoingRequest, "origin" | "path" | "headers">): SentFields {
    const added = this.#fieldsFor(request);
    const missing = missingParameters(request.path, added.query);
    return {
      path: withParameters(request.path, missing),
      headers: withFields(request.headers, added.headers),
      sentKeys: sentKeysOf(request, added, missing),
    };
  }

  /** The names of the headers with secrets that `apply` adds: they keep stored responses apart (law L13). */
  secretHeaders(request: Pick<OutgoingRequest, "origin" | "path">): readonly string[] {
    return this.#fieldsFor(request).secretHeaders;
  }

  /** Whether `apply` adds more than the User-Agent: then a redirect of the host must pass `scrub`. */
  addsIdentity({ origin, path }: Pick<OutgoingRequest, "origin" | "path">): boolean {
    return this.#fieldsFor({ origin, path }) !== this.#userAgent;
  }

  /**
   * Removes from the Location of a redirect the parameters that `apply` has added. Servers repeat the query there, and a
   * client that follows it would send a key to another host or write it to a log. For the right host, `apply` adds them
   * again. `request` may be the one before or after `apply`.
   *
   * Throws a RedirectError when another part of the Location contains a key: without it, the URL would lead elsewhere.
   */
  scrub(head: ResponseHead, request: Pick<OutgoingRequest, "origin" | "path">): ResponseHead {
    const location = head.headers["location"];
    if (location === undefined || head.status < 300 || head.status > 399) return head;
    const added = this.#fieldsFor(request);
    if (added === this.#userAgent) return head;
    const given = typeof location === "string" ? [location] : location;
    const clean = given.map(text => withoutParameters(text, (name, value) => isAddedOrSecret(name, value, added)));
    if (clean.some(text => containsSecret(text, added.secrets))) {
      throw new RedirectError(
        `${hostOf(request.origin).host} redirects to a URL that contains the key sent to this host; ` +
          "it is not followed, because the key must not reach another host or a log",
      );
    }
    if (clean.every((text, index) => text === given[index])) return head;
    const headers = { ...head.headers, location: clean.length === 1 ? clean.join("") : clean };
    return { ...head, headers, rawHeaders: headers };
  }

  #fieldsFor({ origin, path }: Pick<OutgoingRequest, "origin" | "path">): AddedFields {
    const known = this.#originOf(origin);
    // A path that is a complete URL is for a proxy: it may lead to any host, and the connection may not be encrypted.
    if (known.hasNoIdentity || !path.startsWith("/")) return this.#userAgent;
    const identities = this.#identities.at(known.host, known.port, path, this.#routing?.find(known.name, path));
    if (identities.length === 0) return this.#userAgent;
    const same = known.variants.find(variant => isSameList(variant.identities, identities));
    if (same !== undefined) return same.added;
    const added = this.#merge(identities, known);
    known.variants.push({ identities, added });
    return added;
  }

  #originOf(origin: string): Origin {
    const known = this.#origins.get(origin);
    if (known !== undefined) return known;
    const { host, port, isHttps } = hostOf(origin);
    const withPort = `${host}:${port}`;
    const name = this.#routing?.isNamed(withPort) ? withPort : host;
    const hasNoIdentity = host === "" || !this.#mayHaveIdentity(host, port, name);
    const created = { host, port, isHttps, name, hasNoIdentity, variants: [] };
    if (this.#origins.size >= ORIGINS_MAX) {
      for (const oldest of this.#origins.keys()) {
        this.#origins.delete(oldest);
        break;
      }
    }
    this.#origins.set(origin, created);
    return created;
  }

  /** Decided once for each origin, because most hosts have no identity on any path. */
  #mayHaveIdentity(host: string, port: number, name: string): boolean {
    if (this.#identities.of(host, port) !== undefined || this.#routing?.hasPaths(name)) return true;
    return this.#identities.at(host, port, "/", this.#routing?.find(name)).length > 0;
  }

  #merge(identities: readonly Identity[], destination: Destination): AddedFields {
    const [query, headers] = sentFields(identities, destination);
    return {
      query: query.map(field => {
        const { name, placeholders } = field;
        const value = field.reveal();
        return { name, value, placeholders, text: `${encodeURIComponent(name)}=${encodeURIComponent(value)}` };
      }),
      sentKeys: keysOf([...query, ...headers]),
      keyHeaders: headers.filter(({ placeholders }) => placeholders.length > 0),
      headers: [
        ...headers.flatMap(field => [field.name, field.reveal()]),
        ...(headers.some(({ name }) => name === "user-agent") ? [] : this.#userAgent.headers),
      ],
      secrets: [...query, ...headers].flatMap(field => field.revealSecrets()),
      secretHeaders: headers.filter(({ isSecret }) => isSecret).map(({ name }) => name),
    };
  }
}

function isSameList(first: readonly Identity[], second: readonly Identity[]): boolean {
  return first.length === second.length && first.every((identity, index) => identity === second[index]);
}

/** An invalid origin gets no identification; connecting to it will report the error. */
function hostOf(origin: string): Destination {
  try {
    return { ...urlHost(origin), isHttps: URL.parse(origin)?.protocol === "https:" };
  } catch (error) {
    if (error instanceof RangeError) return { host: "", port: 0, isHttps: false };
    throw error;
  }
}

/**
 * The keys that a request carries. A field that the caller has set is kept, so that its key is not sent, unless the caller
 * has set the same value.
 * @param missing the parameters that the caller has not set
 */
function sentKeysOf(
  { path, headers }: Pick<OutgoingRequest, "path" | "headers">,
  { query, keyHeaders, sentKeys }: AddedFields,
  missing: readonly QueryField[],
): SentKeys {
  if (missing.length === query.length && keyHeaders.every(({ name }) => indexOfName(headers, name) === -1))
    return sentKeys;
  const own = queryOf(path);
  const sentQuery = query.filter(({ name, value }) => isParameterSent(name, value, own));
  const sentHeaders = keyHeaders.filter(field =>
    valuesOf(headers, field.name).every(each => each === field.reveal() || isReplaced(field.name, each)),
  );
  const carried = keysOf([...sentQuery, ...sentHeaders]);
  return carried.size === sentKeys.size ? sentKeys : carried;
}

/** Returns the same array when nothing is missing, because this runs for every request. */
function withFields(fields: readonly string[], wanted: readonly string[]): readonly string[] {
  // A copy: a dispatcher that the caller gave may change the headers of its request.
  if (fields.length === 0) return [...wanted];
  let changed: string[] | undefined;
  for (let index = 0; index + 1 < wanted.length; index += 2) {
    const name = wanted[index] ?? "";
    const value = wanted[index + 1] ?? "";
    const at = indexOfName(fields, name);
    if (at === -1) {
      changed ??= [...fields];
      changed.push(name, value);
    } else if (isReplaced(name, fields[at + 1] ?? "")) {
      changed ??= [...fields];
      changed[at + 1] = value;
    }
  }
  return changed ?? fields;
}

/** Whether the value of a header is replaced, because it is the User-Agent of a runtime and not of the caller. */
function isReplaced(name: string, value: string): boolean {
  return name === "user-agent" && DEFAULT_USER_AGENTS.test(value);
}

function valuesOf(fields: readonly string[], name: string): readonly string[] {
  return fields.filter((_, at) => at % 2 === 1 && fields[at - 1] === name);
}

/** The index of a name, or -1. */
function indexOfName(fields: readonly string[], name: string): number {
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === name) return at;
  return -1;
}

/** True for a parameter that `apply` added, and for any parameter that contains a secret, also in a nested URL. */
function isAddedOrSecret(name: string, value: string, { query, secrets }: AddedFields): boolean {
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

/** Ignores case, because host names are in lower case. Decodes twice, because a server may encode a URL several times. */
function containsSecret(location: string, secrets: readonly string[]): boolean {
  const once = unescaped(location);
  const texts = [location, once, unescaped(once)].map(text => text.toLowerCase());
  return secrets.some(secret => {
    const wanted = secret.toLowerCase();
    if (wanted.length >= SECRET_SUBSTRING_LENGTH_MIN) return texts.some(text => text.includes(wanted));
    return wanted !== "" && texts.some(text => text.split(/[/?#@:]/).includes(wanted));
  });
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

/**
 * A parameter of a query. The query of a URL or path is changed as text: other parameters keep their exact bytes, because
 * the URL may be signed.
 */
interface Parameter {
  readonly name: string;
  /** Name and value, percent-encoded. */
  readonly text: string;
}

/** The parameters whose names the query does not have yet. */
function missingParameters(url: string, parameters: readonly QueryField[]): readonly QueryField[] {
  if (parameters.length === 0) return parameters;
  const present = queryOf(url);
  return present.size === 0 ? parameters : parameters.filter(({ name }) => !present.has(name));
}

function withParameters(url: string, added: readonly Parameter[]): string {
  if (added.length === 0) return url;
  const { start, end } = queryRange(url);
  const before = url.slice(0, end);
  const separator = start === undefined ? "?" : start === end || before.endsWith("&") ? "" : "&";
  return `${before}${separator}${added.map(({ text }) => text).join("&")}${url.slice(end)}`;
}

/** Removes parameters. `isUnwanted` gets their decoded names and values. */
function withoutParameters(url: string, isUnwanted: (name: string, value: string) => boolean): string {
  const { start, end } = queryRange(url);
  if (start === undefined) return url;
  const parts = url.slice(start, end).split("&");
  const kept = parts.filter(part => {
    for (const [name, value] of parseQuery(part)) if (isUnwanted(name, value)) return false;
    return true;
  });
  if (kept.length === parts.length) return url;
  const before = kept.length === 0 ? url.slice(0, start - 1) : `${url.slice(0, start)}${kept.join("&")}`;
  return `${before}${url.slice(end)}`;
}

/** `start` is undefined without a query; `end` is where the query ends or would be inserted. */
function queryRange(url: string): { readonly start: number | undefined; readonly end: number } {
  const hash = url.indexOf("#");
  const end = hash === -1 ? url.length : hash;
  const mark = url.indexOf("?");
  return { start: mark === -1 || mark > end ? undefined : mark + 1, end };
}

function queryOf(url: string): URLSearchParams {
  const { start, end } = queryRange(url);
  return parseQuery(start === undefined ? "" : url.slice(start, end));
}

/** URLSearchParams drops a leading question mark, but here it is part of the first name: `/a??b=1`. */
function parseQuery(query: string): URLSearchParams {
  return new URLSearchParams(`&${query}`);
}
