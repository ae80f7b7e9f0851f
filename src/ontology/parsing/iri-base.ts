const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

/** Whether the text begins with a scheme, so that it does not depend on a base. */
export function isAbsoluteIri(text: string): boolean {
  return SCHEME.test(text);
}

/**
 * Resolves references against one base IRI (RFC 3986, section 5.2). The base is split once. Unlike there, dot segments stay
 * in the base, and in references with a scheme or host.
 */
export class IriBase {
  /** Without its fragment. */
  readonly #document: string;
  /** Without query and fragment. */
  readonly #withoutQuery: string;
  /** Scheme and authority. */
  readonly #root: string;
  readonly #scheme: string;
  /** The positions of the slashes of the path, found when a reference first needs them. */
  #slashes: readonly number[] | undefined;

  constructor(iri: string) {
    this.#document = before(iri, "#");
    this.#withoutQuery = before(this.#document, "?");
    this.#scheme = SCHEME.exec(iri)?.[0] ?? "";
    const hasAuthority = this.#withoutQuery.startsWith("//", this.#scheme.length);
    const slash = hasAuthority ? this.#withoutQuery.indexOf("/", this.#scheme.length + 2) : this.#scheme.length;
    this.#root = slash < 0 ? this.#withoutQuery : this.#withoutQuery.slice(0, slash);
  }

  resolve(reference: string): string {
    if (reference === "") return this.#document;
    if (reference.startsWith("#")) return this.#document + reference;
    if (isAbsoluteIri(reference)) return reference;
    if (reference.startsWith("?")) return this.#withoutQuery + reference;
    if (reference.startsWith("//")) return this.#scheme + reference;
    const tailAt = reference.search(/[?#]/);
    const path = tailAt < 0 ? reference : reference.slice(0, tailAt);
    const tail = tailAt < 0 ? "" : reference.slice(tailAt);
    const segments = path.split("/");
    if (path.startsWith("/")) return `${this.#root}/${withoutDots(segments.slice(1)).added.join("/")}${tail}`;
    const { up, added } = withoutDots(segments);
    this.#slashes ??= positionsOf("/", this.#withoutQuery, this.#root.length);
    const slashes = this.#slashes;
    const folder = slashes[Math.max(0, slashes.length - 1 - up)];
    // A base without a path: `http://host`, or `urn:name`.
    const start = this.#root.startsWith("//", this.#scheme.length) ? `${this.#root}/` : this.#root;
    return `${folder === undefined ? start : this.#withoutQuery.slice(0, folder + 1)}${added.join("/")}${tail}`;
  }
}

/** Applies "." and "..". Returns the remaining segments, and by how many folders of the base they go up. */
function withoutDots(segments: readonly string[]): { readonly up: number; readonly added: readonly string[] } {
  let up = 0;
  const added: string[] = [];
  for (const [index, segment] of segments.entries()) {
    if (segment !== "." && segment !== "..") {
      added.push(segment);
      continue;
    }
    if (segment === ".." && added.pop() === undefined) up += 1;
    if (index === segments.length - 1) added.push("");
  }
  return { up, added };
}

function positionsOf(mark: string, text: string, from: number): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at + 1)) found.push(at);
  return found;
}

function before(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}
