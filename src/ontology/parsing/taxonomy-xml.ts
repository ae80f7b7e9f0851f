/** The XML files of an XBRL taxonomy package: its metadata, its catalogue and its schemas. */
import { RDF_TYPE, SKOS } from "./rdf-vocabulary.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";
import type { XmlName } from "./xml-namespaces.ts";
import type { XmlAttribute, XmlHandler } from "./xml-reader.ts";

const XML_SCHEMA = "http://www.w3.org/2001/XMLSchema";
const CATALOG = "urn:oasis:names:tc:entity:xmlns:xml:catalog";
const TEXT_MAX = 10_000;
const ENTRY_POINTS_MAX = 10_000;
const REWRITES_MAX = 10_000;

/** `META-INF/taxonomyPackage.xml` (Taxonomy Packages 1.0). */
export class PackageMetadata implements XmlHandler {
  /** The texts of the elements directly below the root: `identifier`, `name`, `version`, ... The first one counts. */
  readonly #texts = new Map<string, string>();
  readonly #entryPoints: string[] = [];
  #licence: string | undefined;
  #depth = 0;
  /** The element below the root that is open, and its text so far. */
  #open: { readonly name: string; text: string } | undefined;

  get identifier(): string | undefined {
    return this.#texts.get("identifier");
  }
  get name(): string | undefined {
    return this.#texts.get("name");
  }
  get version(): string | undefined {
    return this.#texts.get("version");
  }
  get publicationDate(): string | undefined {
    return this.#texts.get("publicationDate");
  }
  /** The URL of the licence, else its name. */
  get licence(): string | undefined {
    return this.#licence;
  }
  /** The URLs of the schemas with which a taxonomy begins. */
  get entryPoints(): readonly string[] {
    return this.#entryPoints;
  }

  open(name: XmlName, attributes: readonly XmlAttribute[]): void {
    this.#depth += 1;
    if (this.#depth === 1) checkRoot(name);
    else if (this.#depth === 2) this.#open = { name: name.local, text: "" };
    if (name.local === "license") this.#licence ??= attributeOf(attributes, "href") ?? attributeOf(attributes, "name");
    const href = name.local === "entryPointDocument" ? attributeOf(attributes, "href") : undefined;
    if (href === undefined) return;
    if (this.#entryPoints.length >= ENTRY_POINTS_MAX)
      throw new SyntaxProblem(`more than ${ENTRY_POINTS_MAX} entry points`);
    this.#entryPoints.push(href);
  }

  text(text: string): void {
    if (this.#depth === 2 && this.#open !== undefined) this.#open.text = (this.#open.text + text).slice(0, TEXT_MAX);
  }

  close(): void {
    this.#depth -= 1;
    if (this.#depth !== 1 || this.#open === undefined) return;
    const { name, text } = this.#open;
    this.#open = undefined;
    if (text.trim() !== "" && !this.#texts.has(name)) this.#texts.set(name, text.trim());
  }
}

function checkRoot({ namespace, local, raw }: XmlName): void {
  const isPackage = local === "taxonomyPackage" && namespace.startsWith("http://xbrl.org/");
  if (!isPackage) throw new SyntaxProblem(`root element ${raw.slice(0, 80)} is not taxonomyPackage of XBRL`);
}

interface Rewrite {
  readonly start: string;
  readonly prefix: string;
}

/** `META-INF/catalog.xml`: maps URLs to files of the package. */
export class PackageCatalog implements XmlHandler {
  readonly #rewrites: Rewrite[] = [];

  open({ namespace, local }: XmlName, attributes: readonly XmlAttribute[]): void {
    if (namespace !== CATALOG || local !== "rewriteURI") return;
    const start = attributeOf(attributes, "uriStartString");
    const prefix = attributeOf(attributes, "rewritePrefix");
    if (start === undefined || prefix === undefined)
      throw new SyntaxProblem("rewriteURI without uriStartString or rewritePrefix");
    if (this.#rewrites.length >= REWRITES_MAX) throw new SyntaxProblem(`more than ${REWRITES_MAX} rewrites`);
    this.#rewrites.push({ start, prefix });
  }

  /** The address relative to the catalogue; undefined if no entry matches. The longest matching start counts. */
  addressOf(url: string): string | undefined {
    let best: Rewrite | undefined;
    for (const rewrite of this.#rewrites) {
      if (best !== undefined && rewrite.start.length <= best.start.length) continue;
      if (url.startsWith(rewrite.start)) best = rewrite;
    }
    return best && best.prefix + url.slice(best.start.length);
  }
}

/** A schema. Each item or tuple that it declares is a `skos:Concept`: `<target namespace>#<name>`. */
export class SchemaConcepts implements XmlHandler {
  readonly #onStatement: OnStatement;
  #namespace = "";
  #depth = 0;

  constructor(onStatement: OnStatement) {
    this.#onStatement = onStatement;
  }

  open({ namespace, local, raw }: XmlName, attributes: readonly XmlAttribute[]): void {
    this.#depth += 1;
    if (this.#depth === 1) {
      if (namespace !== XML_SCHEMA || local !== "schema")
        throw new SyntaxProblem(`root element ${raw.slice(0, 80)} is not an XML schema`);
      this.#namespace = attributeOf(attributes, "targetNamespace") ?? "";
    } else if (this.#depth === 2 && namespace === XML_SCHEMA && local === "element") this.#declare(attributes);
  }

  close(): void {
    this.#depth -= 1;
  }

  /** Concepts are in the substitution group of an item, a tuple, a dimension or a hypercube. */
  #declare(attributes: readonly XmlAttribute[]): void {
    const name = attributeOf(attributes, "name");
    if (name === undefined || attributeOf(attributes, "substitutionGroup") === undefined) return;
    this.#onStatement(`${this.#namespace}#${name}`, RDF_TYPE, `${SKOS}Concept`, "iri", "", "");
  }
}

function attributeOf(attributes: readonly XmlAttribute[], local: string): string | undefined {
  return attributes.find(({ name }) => name.local === local && name.namespace === "")?.value;
}
