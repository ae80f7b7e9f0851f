import { BlankNodes, blankNodeOf, nodeOf, ONTOLOGY_NODE } from "./blank-nodes.ts";
import { IriBase } from "./iri-base.ts";
import { checkBase, checkNamespace } from "./limits.ts";
import { AXIOMS, ENTITY_TYPES, emitAxiom, emitValue, iriOf, type Operand } from "./owl-axiom.ts";
import {
  OWL,
  OWL_IMPORTS,
  OWL_ONTOLOGY,
  OWL_VERSION_IRI,
  PLAIN_LITERAL,
  RDF,
  RDF_TYPE,
  RDFS,
  XSD,
} from "./rdf-vocabulary.ts";
import type { OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";
import { XML_NAMESPACE, type XmlName } from "./xml-namespaces.ts";
import type { XmlAttribute, XmlHandler } from "./xml-reader.ts";

/** An axiom that gives statements has fewer operands. */
const OPERANDS_MAX = 4;

interface OpenElement {
  readonly name: string;
  /** The first operands. The others are only counted. */
  readonly operands: Operand[];
  count: number;
  iri: string | undefined;
  language: string;
  datatype: string;
  text: string;
}

/** OWL/XML (https://www.w3.org/TR/owl2-xml-serialization/). Axioms are counted; those on names give statements. */
export class OwlXmlParser implements XmlHandler {
  readonly #onStatement: OnStatement;
  readonly #open: OpenElement[] = [];
  readonly #prefixes = new Map([
    ["owl:", OWL],
    ["rdf:", RDF],
    ["rdfs:", RDFS],
    ["xsd:", XSD],
  ]);
  #base: IriBase;
  #ontology = ONTOLOGY_NODE;
  readonly #blanks = new BlankNodes();
  axioms = 0;

  constructor(onStatement: OnStatement, base: string) {
    this.#onStatement = onStatement;
    this.#base = new IriBase(base);
  }

  open({ namespace, local, raw }: XmlName, attributes: readonly XmlAttribute[]): void {
    if (namespace !== OWL) throw new SyntaxProblem(`element ${raw.slice(0, 80)} is not in the OWL namespace`);
    const attribute = (name: string) => attributes.find(({ name: key }) => key.local === name)?.value;
    const base = attributes.find(({ name }) => name.namespace === XML_NAMESPACE && name.local === "base")?.value;
    if (base !== undefined && this.#open.length === 0) {
      checkBase(base);
      this.#base = new IriBase(this.#base.resolve(base));
    }
    if (this.#open.length === 0) this.#openOntology(attribute("ontologyIRI"), attribute("versionIRI"));
    if (this.#open.length === 1 && local !== "Prefix" && local !== "Import" && local !== "Annotation") {
      if (!AXIOMS.has(local)) throw new SyntaxProblem(`unknown axiom ${local.slice(0, 80)}`);
      this.axioms += 1;
    }
    if (local === "Prefix") this.#declare(attribute("name"), attribute("IRI"));
    this.#open.push({
      name: local,
      operands: [],
      count: 0,
      iri: this.#iri(attribute("IRI"), attribute("abbreviatedIRI")) ?? individualOf(attribute("nodeID")),
      language: attributes.find(({ name }) => name.local === "lang")?.value ?? "",
      datatype: this.#iri(attribute("datatypeIRI"), undefined) ?? "",
      text: "",
    });
  }

  text(text: string): void {
    const element = this.#open.at(-1);
    if (element === undefined) return;
    if (TEXT_ELEMENTS.has(element.name)) element.text += text;
    else if (text.trim() !== "") throw new SyntaxProblem(`text inside ${element.name}`);
  }

  close(): void {
    const element = this.#open.pop();
    const parent = this.#open.at(-1);
    if (element === undefined || parent === undefined) return;
    // Annotations of an axiom come before its operands.
    if (this.#open.length > 1 && element.name === "Annotation") return;
    if (this.#open.length === 1) {
      this.#finish(element);
      return;
    }
    parent.count += 1;
    if (parent.operands.length < OPERANDS_MAX) parent.operands.push(this.#operandOf(element));
  }

  #finish({ name, operands, text, count }: OpenElement): void {
    if (name === "Prefix") return;
    if (name === "Import") {
      this.#onStatement(this.#ontology, OWL_IMPORTS, this.#base.resolve(text.trim()), "iri", "", "");
      return;
    }
    if (name === "Annotation") {
      const property = iriOf(operands[0]);
      const [, value] = operands;
      if (property !== undefined && value !== undefined) {
        emitValue(this.#ontology, property, value, this.#onStatement);
      }
      return;
    }
    const least = AXIOMS.get(name) ?? 0;
    if (count < least) throw new SyntaxProblem(`${name} has ${count} operands, expected at least ${least}`);
    emitAxiom(name, count > operands.length ? [] : operands, this.#onStatement, this.#blanks);
  }

  #operandOf({ name, iri, operands, text, language, datatype, count }: OpenElement): Operand {
    const type = ENTITY_TYPES.get(name);
    if (type !== undefined && iri !== undefined) return { kind: "entity", type, iri };
    if (type !== undefined) throw new SyntaxProblem(`${name} without an IRI`);
    if (name === "Literal")
      return { kind: "literal", text, language, datatype: datatype === PLAIN_LITERAL ? "" : datatype };
    if (name === "AnonymousIndividual" && iri !== undefined) return { kind: "iri", iri };
    if (name === "IRI") return { kind: "iri", iri: this.#base.resolve(text.trim()) };
    if (name === "AbbreviatedIRI") return { kind: "iri", iri: this.#iri(undefined, text.trim()) ?? "" };
    if (name === "ObjectSomeValuesFrom" && count === 2) {
      const property = iriOf(operands[0]);
      const filler = iriOf(operands[1]);
      if (property !== undefined && filler !== undefined) return { kind: "some", property, filler };
    }
    return { kind: "other" };
  }

  #openOntology(iri: string | undefined, versionIri: string | undefined): void {
    if (iri !== undefined) this.#ontology = this.#base.resolve(iri);
    this.#onStatement(this.#ontology, RDF_TYPE, OWL_ONTOLOGY, "iri", "", "");
    if (versionIri === undefined) return;
    this.#onStatement(this.#ontology, OWL_VERSION_IRI, this.#base.resolve(versionIri), "iri", "", "");
  }

  #declare(name: string | undefined, iri: string | undefined): void {
    if (name === undefined || iri === undefined) throw new SyntaxProblem("Prefix without name or IRI");
    checkNamespace(iri);
    this.#prefixes.set(`${name}:`, iri);
  }

  #iri(full: string | undefined, abbreviated: string | undefined): string | undefined {
    if (full !== undefined) return this.#base.resolve(full);
    if (abbreviated === undefined || abbreviated.startsWith("_:")) return individualOf(abbreviated);
    const colon = abbreviated.indexOf(":") + 1;
    const namespace = this.#prefixes.get(colon === 0 ? ":" : abbreviated.slice(0, colon));
    if (namespace === undefined) throw new SyntaxProblem(`undeclared prefix in ${abbreviated.slice(0, 80)}`);
    return nodeOf(namespace + abbreviated.slice(colon));
  }
}

/** The standard writes a `nodeID` without `_:`, the OWL API writes it with `_:`. */
function individualOf(nodeId: string | undefined): string | undefined {
  return nodeId === undefined ? undefined : blankNodeOf(nodeId.startsWith("_:") ? nodeId.slice(2) : nodeId);
}

const TEXT_ELEMENTS = new Set(["Import", "IRI", "AbbreviatedIRI", "Literal"]);
