import { checkNamespace } from "./limits.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

export const XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace";
const XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/";
const NAMES_MAX = 10_000;
const LOWER_X = 0x78;

/** A name with its namespace. */
export interface XmlName {
  /** As written: `owl:Class`. */
  readonly raw: string;
  /** Empty if the name is in no namespace. */
  readonly namespace: string;
  readonly local: string;
  /** Namespace and local name joined, which is the IRI of the name in RDF. */
  readonly iri: string;
}

/** The namespaces in scope. A name is resolved in constant time, whatever the depth. */
export class XmlNamespaces {
  readonly #uris = new Map<string, string>([
    ["xml", XML_NAMESPACE],
    ["xmlns", XMLNS_NAMESPACE],
  ]);
  /** For each open element: the declarations to undo when it closes. */
  readonly #undo: (readonly (readonly [prefix: string, uri: string | undefined])[] | undefined)[] = [];
  /** Names resolved since the last change of a namespace. Files use few names, many times. */
  readonly #elements = new Map<string, XmlName>();
  readonly #attributes = new Map<string, XmlName>();

  /** Enters an element. Its declarations are among its attributes. */
  open(attributes: Readonly<Record<string, string>>): void {
    let undo: [string, string | undefined][] | undefined;
    for (const name in attributes) {
      // Most attributes do not begin with an x.
      if (name.charCodeAt(0) !== LOWER_X || !name.startsWith("xmlns")) continue;
      const prefix = name === "xmlns" ? "" : name[5] === ":" ? name.slice(6) : undefined;
      if (prefix === undefined) continue;
      const uri = attributes[name] ?? "";
      checkDeclaration(prefix, uri);
      undo ??= [];
      undo.push([prefix, this.#uris.get(prefix)]);
      this.#uris.set(prefix, uri);
    }
    if (undo !== undefined) this.#forgetNames();
    this.#undo.push(undo);
  }

  close(): void {
    const undo = this.#undo.pop();
    if (undo === undefined) return;
    for (const [prefix, uri] of undo) {
      if (uri === undefined) this.#uris.delete(prefix);
      else this.#uris.set(prefix, uri);
    }
    this.#forgetNames();
  }

  /** Whether a prefix in scope has this namespace. */
  declares(namespace: string): boolean {
    for (const uri of this.#uris.values()) if (uri === namespace) return true;
    return false;
  }

  element(raw: string): XmlName {
    return this.#elements.get(raw) ?? this.#resolve(raw, this.#elements, this.#uris.get("") ?? "");
  }

  /** An attribute without a prefix is in no namespace. */
  attribute(raw: string): XmlName {
    return this.#attributes.get(raw) ?? this.#resolve(raw, this.#attributes, "");
  }

  #resolve(raw: string, cache: Map<string, XmlName>, unprefixed: string): XmlName {
    const colon = raw.indexOf(":");
    if (colon === 0 || colon === raw.length - 1 || (colon > 0 && raw.indexOf(":", colon + 1) >= 0)) {
      throw new SyntaxProblem(`invalid name ${JSON.stringify(raw.slice(0, 80))}`);
    }
    const prefix = raw.slice(0, Math.max(0, colon));
    const namespace = colon < 0 ? unprefixed : this.#uris.get(prefix);
    if (namespace === undefined) {
      throw new SyntaxProblem(`undeclared namespace prefix ${JSON.stringify(prefix.slice(0, 80))}`);
    }
    const local = raw.slice(colon + 1);
    const name = { raw, namespace, local, iri: namespace + local };
    if (cache.size < NAMES_MAX) cache.set(raw, name);
    return name;
  }

  #forgetNames(): void {
    this.#elements.clear();
    this.#attributes.clear();
  }
}

function checkDeclaration(prefix: string, uri: string): void {
  checkNamespace(uri);
  if (prefix !== "" && uri === "") throw new SyntaxProblem(`namespace prefix ${prefix.slice(0, 80)} has an empty IRI`);
  const isReserved = prefix === "xmlns" || (prefix === "xml") !== (uri === XML_NAMESPACE) || uri === XMLNS_NAMESPACE;
  if (isReserved) throw new SyntaxProblem("the namespaces xml and xmlns cannot be declared");
}
