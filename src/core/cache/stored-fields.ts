/**
 * The headers of a stored response: which are stored, which revalidate it, and how a 304 updates them (RFC 9111,
 * sections 3.1, 3.2, 4.3, 4.4).
 */

/** Header fields by lower-case name; a repeated field has an array of values. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;
/** `HeaderFields` without undefined values. */
export type StoredFields = Readonly<Record<string, string | string[]>>;

/** Fields of one connection or proxy, not of the response. */
const HOP_BY_HOP: ReadonlySet<string> = new Set(
  "connection keep-alive te trailer transfer-encoding upgrade".split(" "),
);

/** Fields that describe the stored body, which a 304 does not replace. */
const BODY_FIELDS: ReadonlySet<string> = new Set(["content-length", "content-encoding", "content-range"]);

/** Fields of one message. The stored ones are removed on revalidation: an old `Date` would raise the age. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(["age", "date"]);

/** Methods without effect on the server. Any other method, known or not, may change the resource. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

const ALL = () => true;

/** The fields that may be stored: all but those of the connection and those that `Connection` names. */
export function storedHeaders(headers: HeaderFields): StoredFields {
  const connection = headers["connection"];
  if (connection === undefined || connection === "keep-alive") return storableFields(headers, ALL);
  const named = new Set(namesIn(connection));
  return storableFields(headers, name => !named.has(name));
}

/** The conditional fields of a revalidation. Empty when the stored response has no validator. */
export function revalidationHeaders(stored: HeaderFields): Readonly<Record<string, string>> {
  const etag = firstValue(stored["etag"]);
  const lastModified = firstValue(stored["last-modified"]);
  return {
    // `*` would match any version of the resource and always give a 304.
    ...(etag !== undefined && etag !== "*" && { "if-none-match": etag }),
    ...(lastModified !== undefined && { "if-modified-since": lastModified }),
  };
}

/**
 * False when a 304 belongs to another representation than the stored one and must not update it.
 * The weak prefix of the stored tag is ignored: servers that compress on the fly weaken the tag of a 200 and not that
 * of the 304. A weak tag in the 304 cannot prove a difference, so it counts as the same. Without a tag, the date counts: some
 * servers send a 304 also for a file that was replaced by an older one.
 */
export function isSameRepresentation(stored: HeaderFields, of304: HeaderFields): boolean {
  const tag = firstValue(of304["etag"]);
  if (tag !== undefined) return tag.startsWith("W/") || tag === firstValue(stored["etag"])?.replace(/^W\//, "");
  const modified = firstValue(of304["last-modified"]);
  const storedModified = firstValue(stored["last-modified"]);
  return modified === undefined || storedModified === undefined || modified === storedModified;
}

/** The stored fields after a 304: fields of the 304 replace stored ones, the others stay. */
export function freshened(stored: HeaderFields, of304: HeaderFields): StoredFields {
  const renewed = Object.entries(storedHeaders(of304)).filter(([name]) => !BODY_FIELDS.has(name));
  return Object.fromEntries([...Object.entries(storableFields(stored, name => !MESSAGE_FIELDS.has(name))), ...renewed]);
}

/**
 * The URLs whose stored responses are invalid after this response: after a successful unsafe request its own URL, and
 * the URLs of the same origin in `Location` and `Content-Location`. Other origins are ignored, because a site must not
 * be able to clear the cache of another one.
 */
export function invalidatedUrls(method: string, status: number, url: string, headers: HeaderFields): readonly string[] {
  if (SAFE_METHODS.has(method) || status < 200 || status >= 400) return [];
  const origin = URL.parse(url)?.origin;
  // The URL itself too, in its normal form: a client of node:http sends a path as it was given, and the stored responses of
  // fetch are under the normal one.
  const pointers = ["", headers["location"], headers["content-location"]].flat();
  const targets = pointers.flatMap(pointer => {
    const target = pointer === undefined ? null : URL.parse(pointer, url);
    if (target === null || target.origin !== origin) return [];
    target.hash = "";
    return [target.href];
  });
  return [...new Set([url, ...targets])];
}

/** The first value, trimmed; undefined when absent or empty. */
export function firstValue(value: string | readonly string[] | undefined): string | undefined {
  return (typeof value === "string" ? value : value?.[0])?.trim() || undefined;
}

/** A loop, because it runs for every stored response: `Object.entries` would make an array for each field. */
function storableFields(headers: HeaderFields, isKept: (name: string) => boolean): StoredFields {
  const kept: Record<string, string | string[]> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || HOP_BY_HOP.has(name) || name.startsWith("proxy-") || !isKept(name)) continue;
    // A server may send a field of this name, and an assignment would set the prototype.
    if (name === "__proto__")
      Object.defineProperty(kept, name, { value, enumerable: true, configurable: true, writable: true });
    else kept[name] = value;
  }
  return kept;
}

/** The names in a comma-separated list, in lower case. */
export function namesIn(value: string | readonly string[] | undefined): readonly string[] {
  const text = typeof value === "string" ? value : (value?.join() ?? "");
  return text
    .toLowerCase()
    .split(",")
    .map(name => name.trim())
    .filter(name => name !== "");
}
