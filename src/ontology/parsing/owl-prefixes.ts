import { nodeOf } from "./blank-nodes.ts";
import { IriBase } from "./iri-base.ts";
import { checkNamespace } from "./limits.ts";
import { OWL, RDF, RDFS, XSD } from "./rdf-vocabulary.ts";
import { SyntaxProblem } from "./syntax-problem.ts";

const XML = "http://www.w3.org/XML/1998/namespace";

/** The prefixes of a functional or Manchester file, with those that every file may use. */
export class OwlPrefixes {
  readonly #namespaces = new Map([
    ["owl:", OWL],
    ["rdf:", RDF],
    ["rdfs:", RDFS],
    ["xsd:", XSD],
    ["xml:", XML],
  ]);
  readonly #base: IriBase;

  constructor(base: string) {
    this.#base = new IriBase(base);
  }

  /** @param name with its colon. */
  declare(name: string, iri: string): void {
    checkNamespace(iri);
    this.#namespaces.set(name, iri);
  }

  full(iri: string): string {
    return this.#base.resolve(iri);
  }

  /**
   * The IRI of an abbreviated name, or a blank node for `_:name`. Manchester syntax may leave out the colon of the empty
   * prefix.
   */
  expand(name: string): string {
    if (name.startsWith("_:")) return nodeOf(name);
    const colon = name.indexOf(":") + 1;
    const namespace = this.#namespaces.get(colon === 0 ? ":" : name.slice(0, colon));
    if (namespace === undefined) throw new SyntaxProblem(`undeclared prefix in ${JSON.stringify(name.slice(0, 80))}`);
    return nodeOf(namespace + name.slice(colon));
  }
}
