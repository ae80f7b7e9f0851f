/**
 * What a cache does with the fields of a response: which of them it keeps, which select a variant, which ask whether
 * a stored response still holds, and how the answer to that renews them (RFC 9111, sections 3.1, 3.2, 4.1, 4.3, 4.4).
 */

/** By lower-case names; a field that came several times has several values. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;
/** As `Fields`, with nothing absent in it. */
export type StoredFields = Readonly<Record<string, string | string[]>>;

/** They belong to a connection or to a proxy on the way, not to the response. */
const HOP_BY_HOP: ReadonlySet<string> = new Set(
  "connection keep-alive te trailer transfer-encoding upgrade".split(" "),
);

/** They describe the stored bytes, which a 304 does not bring anew. */
const BODY_FIELDS: ReadonlySet<string> = new Set(["content-length", "content-encoding", "content-range"]);

/** They describe one message, so that the former one's must not outlive it: an old `Date` would age the new answer. */
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(["age", "date"]);

/** Methods that change nothing on the server. One we do not know may change anything. */
const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** The fields that may be kept: all but those of the connection, and those that `Connection` names as such. */
export function storedHeaders(headers: HeaderFields): StoredFields {
  const named = new Set(namesIn(headers["connection"]));
  return storableFields(headers, name => !named.has(name));
}

/** The names in a `Vary`, sorted and once each. `*` is among them where the response said so. */
export function varyNames(vary: string | readonly string[] | undefined): readonly string[] {
  return vary === undefined ? NO_NAMES : [...new Set(namesIn(vary))].sort();
}

const NO_NAMES: readonly string[] = Object.freeze([]);

/**
 * One text for all requests that select the same variant; empty where no field selects. A field that is absent differs
 * from an empty one, and nothing that a value may hold can pass for the end of it.
 * The text holds the values as they are, and `Authorization` may be among them: it is not for a disk.
 */
export function varyKeyOf(
  names: readonly string[],
  header: (name: string) => string | readonly string[] | undefined,
): string {
  return names.length === 0 ? "" : JSON.stringify(names.map(name => [name, joined(header(name))]));
}

/** The fields that make a request ask only whether the stored response still holds. None where nothing can tell. */
export function revalidationHeaders(stored: HeaderFields): Readonly<Record<string, string>> {
  const etag = firstValue(stored["etag"]);
  const lastModified = firstValue(stored["last-modified"]);
  return {
    // A `*` would be answered with "not modified" whatever the resource has become.
    ...(etag !== undefined && etag !== "*" && { "if-none-match": etag }),
    ...(lastModified !== undefined && { "if-modified-since": lastModified }),
  };
}

/**
 * False when a 304 speaks of another representation than the stored one, which it then must not renew.
 * Tags are compared by what is in quotes: servers that compress on the fly weaken the tag of a 200 and not that of a
 * 304, and mean the same. A weak tag in the 304 is no reason to doubt it, as it promises too little to contradict.
 */
export function isSameRepresentation(stored: HeaderFields, of304: HeaderFields): boolean {
  const tag = firstValue(of304["etag"]);
  return tag === undefined || tag.startsWith("W/") || tag === firstValue(stored["etag"])?.replace(/^W\//, "");
}

/** The stored fields as a 304 renews them, whether it repeats a validator or not. What it does not name, stays. */
export function freshened(stored: HeaderFields, of304: HeaderFields): StoredFields {
  const renewed = Object.entries(storedHeaders(of304)).filter(([name]) => !BODY_FIELDS.has(name));
  return Object.fromEntries([...Object.entries(storableFields(stored, name => !MESSAGE_FIELDS.has(name))), ...renewed]);
}

/**
 * The URLs whose stored responses an answer makes void: after an unsafe request that did not fail, its own, and those
 * that the answer points to on the same origin. A pointer to another origin is ignored: one site must not be able to
 * empty the cache of another.
 */
export function invalidatedUrls(method: string, status: number, url: string, headers: HeaderFields): readonly string[] {
  if (SAFE_METHODS.has(method) || status < 200 || status >= 400) return [];
  const origin = URL.parse(url)?.origin;
  const pointers = [headers["location"], headers["content-location"]].flat();
  const targets = pointers.flatMap(pointer => {
    const target = pointer === undefined ? null : URL.parse(pointer, url);
    if (target === null || target.origin !== origin) return [];
    target.hash = "";
    return [target.href];
  });
  return [...new Set([url, ...targets])];
}

/** The first value, without blanks around it; undefined where there is none or an empty one. */
export function firstValue(value: string | readonly string[] | undefined): string | undefined {
  return (typeof value === "string" ? value : value?.[0])?.trim() || undefined;
}

function storableFields(headers: HeaderFields, isKept: (name: string) => boolean): StoredFields {
  // By entries, since a field may be called `__proto__`.
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || HOP_BY_HOP.has(name) || name.startsWith("proxy-") || !isKept(name)
        ? []
        : [[name, value] as const],
    ),
  );
}

/** The members of a comma-separated list of names, in lower case. */
function namesIn(value: string | readonly string[] | undefined): readonly string[] {
  const text = typeof value === "string" ? value : (value?.join() ?? "");
  return text
    .toLowerCase()
    .split(",")
    .map(name => name.trim())
    .filter(name => name !== "");
}

function joined(value: string | readonly string[] | undefined): string | null {
  if (typeof value === "string") return value.trim();
  return value === undefined || value.length === 0 ? null : value.map(line => line.trim()).join(", ");
}
