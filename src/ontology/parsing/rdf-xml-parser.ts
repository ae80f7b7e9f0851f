/**
 * Parses RDF/XML (https://www.w3.org/TR/rdf-syntax-grammar/, with the additions of RDF 1.2) from the events of an XML
 * reader. It keeps the frames of open elements and the hashes of ids in memory, but no statements.
 */
import { IriBase } from "./iri-base.ts";
import { checkBase } from "./limits.ts";
import { RDF, RDF_TYPE } from "./rdf-vocabulary.ts";
import { type FrameKind, RdfXmlFrame } from "./rdf-xml-frame.ts";
import { nodeOfId, RdfXmlIds } from "./rdf-xml-ids.ts";
import { RdfXmlStatements } from "./rdf-xml-statements.ts";
import { nodeKind, type OnStatement } from "./statement.ts";
import { SyntaxProblem } from "./syntax-problem.ts";
import { XmlLiteral } from "./xml-literal.ts";
import { XML_NAMESPACE, type XmlName } from "./xml-namespaces.ts";
import type { XmlAttribute, XmlHandler } from "./xml-reader.ts";

const ITS = "http://www.w3.org/2005/11/its";
const OLD_TERMS = ["aboutEach", "aboutEachPrefix", "bagID"];
const CORE_TERMS = ["RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype"];
const NOT_NODES = new Set([...CORE_TERMS, ...OLD_TERMS, "li"]);
const NOT_PROPERTIES = new Set([...CORE_TERMS, ...OLD_TERMS, "Description"]);
const NOT_ATTRIBUTES = new Set([...CORE_TERMS, ...OLD_TERMS, "Description", "li"]);
/** The attributes that may lack their prefix (section 6.1.4), as in documents from before 2004. */
const UNPREFIXED = new Set(["ID", "about", "resource", "parseType", "type"]);

interface PropertyAttributes {
  readonly parseType: string | undefined;
  readonly object: string | undefined;
  readonly described: readonly XmlAttribute[];
}

export class RdfXmlParser implements XmlHandler {
  readonly #statements: RdfXmlStatements;
  readonly #frames: RdfXmlFrame[];
  readonly #ids = new RdfXmlIds();
  /** The open property with `parseType="Literal"`, or the last one: literals contain no others. */
  #literal = new XmlLiteral();

  constructor(onStatement: OnStatement, base: string) {
    this.#statements = new RdfXmlStatements(onStatement);
    const context = { base: new IriBase(base), language: "", direction: "", version: "" };
    this.#frames = [new RdfXmlFrame("document", context)];
  }

  open(name: XmlName, attributes: readonly XmlAttribute[]): void {
    const parent = this.#top();
    switch (parent.kind) {
      case "document":
        if (name.namespace === RDF && name.local === "RDF") this.#openRoot(parent, attributes);
        else this.#openNode(parent, name, attributes);
        return;
      case "literal":
        this.#literal.open(name, attributes);
        return;
      case "node":
        this.#openProperty(parent, name, attributes);
        return;
      case "empty":
        throw new SyntaxProblem("a property with rdf:resource, rdf:nodeID or attributes has content");
      case "property":
        if (parent.hasChild) throw new SyntaxProblem(`property ${parent.predicate} contains two elements`);
        if (!isBlank(parent.text)) throw new SyntaxProblem(`property ${parent.predicate} contains text and an element`);
        parent.hasChild = true;
        this.#openNode(parent, name, attributes);
        return;
      default:
        this.#openNode(parent, name, attributes);
    }
  }

  text(text: string): void {
    const frame = this.#top();
    if (frame.kind === "literal") this.#literal.addText(text);
    else if (frame.kind === "property") {
      frame.text += text;
      if (frame.hasChild && !isBlank(text)) {
        throw new SyntaxProblem(`property ${frame.predicate} contains text and an element`);
      }
    } else if (!isBlank(text)) throw new SyntaxProblem("text between elements");
  }

  close(name: string): void {
    const frame = this.#top();
    if (frame.kind === "literal" && this.#literal.depth > 0) {
      this.#literal.close(name);
      return;
    }
    this.#frames.pop();
    if (frame.kind === "property" && !frame.hasChild) this.#emitLiteral(frame, frame.text, frame.datatype);
    else if (frame.kind === "literal") this.#emitLiteral(frame, this.#literal.text, `${RDF}XMLLiteral`);
    else if (frame.kind === "collection") this.#endCollection(frame);
    else if (frame.kind === "triple") this.#statements.emitProperty(frame, this.#statements.endTriple(), "triple");
  }

  #openRoot(parent: RdfXmlFrame, attributes: readonly XmlAttribute[]): void {
    const frame = this.#push("rdf", parent);
    for (const attribute of attributes) this.#readContext(frame, attribute);
  }

  #openNode(parent: RdfXmlFrame, name: XmlName, attributes: readonly XmlAttribute[]): void {
    if (name.namespace === "") throw new SyntaxProblem(`element ${name.raw} has no namespace`);
    if (name.namespace === RDF && NOT_NODES.has(name.local)) throw new SyntaxProblem(`${name.raw} is not a node`);
    const frame = this.#push("node", parent);
    const properties = withPrefix(attributes).filter(attribute => !this.#readContext(frame, attribute));
    let subject: string | undefined;
    const identify = (value: string) => {
      if (subject !== undefined) throw new SyntaxProblem("only one of rdf:about, rdf:ID and rdf:nodeID is permitted");
      subject = value;
    };
    for (const { name: attribute, value } of properties) {
      if (attribute.namespace !== RDF) continue;
      if (attribute.local === "about") identify(frame.base.resolve(value));
      else if (attribute.local === "ID") identify(this.#ids.claim(frame.base, value));
      else if (attribute.local === "nodeID") identify(nodeOfId(value));
      else if (NOT_ATTRIBUTES.has(attribute.local)) throw new SyntaxProblem(`${attribute.raw} on a node`);
    }
    frame.subject = subject ?? this.#statements.newBlank();
    if (parent.kind !== "document" && parent.kind !== "rdf") this.#link(parent, frame.subject);
    if (name.namespace !== RDF || name.local !== "Description") {
      this.#statements.emit(frame.subject, RDF_TYPE, name.iri, "iri");
    }
    this.#emitAttributes(frame, properties, frame.subject);
  }

  /** Emits the statement whose object is a node element. */
  #link(parent: RdfXmlFrame, node: string): void {
    if (parent.kind === "collection") {
      const cell = this.#statements.newBlank();
      if (parent.lastCell === "") this.#statements.emitProperty(parent, cell, "blank");
      else this.#statements.emit(parent.lastCell, `${RDF}rest`, cell, "blank");
      this.#statements.emit(cell, `${RDF}first`, node, nodeKind(node));
      parent.lastCell = cell;
    } else if (parent.kind === "property") this.#statements.emitProperty(parent, node, nodeKind(node));
  }

  #openProperty(parent: RdfXmlFrame, name: XmlName, attributes: readonly XmlAttribute[]): void {
    if (name.namespace === "") throw new SyntaxProblem(`element ${name.raw} has no namespace`);
    if (name.namespace === RDF && NOT_PROPERTIES.has(name.local)) {
      throw new SyntaxProblem(`${name.raw} is not a property`);
    }
    const isItem = name.namespace === RDF && name.local === "li";
    const frame = this.#push("property", parent);
    frame.subject = parent.subject;
    frame.predicate = isItem ? `${RDF}_${parent.nextItem++}` : name.iri;
    const { parseType, object, described } = this.#readPropertyAttributes(frame, attributes);
    const isEmpty = object !== undefined || described.length > 0;
    if (parseType !== undefined && (isEmpty || frame.datatype !== "")) {
      throw new SyntaxProblem("rdf:parseType together with rdf:resource, rdf:nodeID, rdf:datatype or other attributes");
    }
    if (isEmpty && frame.datatype !== "") throw new SyntaxProblem("rdf:datatype on a property without text");
    frame.kind = kindOfProperty(parseType, isEmpty, frame.version);
    if (frame.kind === "literal") this.#literal = new XmlLiteral();
    if (parseType === "Resource") {
      const node = this.#statements.newBlank();
      this.#statements.emitProperty(frame, node, "blank");
      frame.subject = node;
    } else if (frame.kind === "triple") {
      this.#statements.beginTriple();
    } else if (isEmpty) {
      const node = object ?? this.#statements.newBlank();
      this.#statements.emitProperty(frame, node, nodeKind(node));
      this.#emitAttributes(frame, described, node);
    }
  }

  /** Returns the object that the attributes of a property name, and the attributes (`described`) about this object. */
  #readPropertyAttributes(frame: RdfXmlFrame, attributes: readonly XmlAttribute[]): PropertyAttributes {
    let parseType: string | undefined;
    let object: string | undefined;
    const described: XmlAttribute[] = [];
    // The base and the language of the element apply to all its attributes, so they are read first.
    for (const attribute of withPrefix(attributes).filter(candidate => !this.#readContext(frame, candidate))) {
      const { name, value } = attribute;
      if (name.namespace === "") continue;
      if (name.namespace !== RDF) described.push(attribute);
      else if (name.local === "parseType") parseType = value;
      else if (name.local === "ID") frame.statementId = this.#ids.claim(frame.base, value);
      else if (name.local === "datatype") frame.datatype = frame.base.resolve(value);
      else if (name.local === "annotation") frame.reifier = frame.base.resolve(value);
      else if (name.local === "annotationNodeID") frame.reifier = nodeOfId(value);
      else if (name.local === "resource" || name.local === "nodeID") {
        if (object !== undefined) throw new SyntaxProblem("rdf:resource and rdf:nodeID on one property");
        object = name.local === "resource" ? frame.base.resolve(value) : nodeOfId(value);
      } else if (NOT_ATTRIBUTES.has(name.local)) throw new SyntaxProblem(`${name.raw} on a property`);
      else described.push(attribute);
    }
    return { parseType, object, described };
  }

  /**
   * Applies an attribute that sets base, language, direction or version, for this element and those inside. Returns
   * false for any other attribute.
   */
  #readContext(frame: RdfXmlFrame, { name: { namespace, local, raw }, value }: XmlAttribute): boolean {
    if (namespace === XML_NAMESPACE) {
      if (local === "lang") frame.language = value;
      if (local === "base") {
        const base = frame.base.resolve(value);
        checkBase(base);
        frame.base = new IriBase(base);
      }
      return true;
    }
    if (namespace === ITS) {
      if (local === "dir" && value !== "ltr" && value !== "rtl" && value !== "") {
        throw new SyntaxProblem(`${raw} is ${JSON.stringify(value.slice(0, 80))}, expected ltr or rtl`);
      }
      if (local === "dir") frame.direction = value;
      return true;
    }
    if (namespace !== RDF || local !== "version") return false;
    frame.version = value;
    return true;
  }

  #emitAttributes(frame: RdfXmlFrame, attributes: readonly XmlAttribute[], subject: string): void {
    for (const { name, value } of attributes) {
      const rdfName = name.namespace === RDF ? name.local : "";
      if (name.namespace === "" || ["about", "ID", "nodeID"].includes(rdfName)) continue;
      if (rdfName === "type") this.#statements.emit(subject, RDF_TYPE, frame.base.resolve(value), "iri");
      else this.#statements.emit(subject, name.iri, value, "literal", languageOf(frame));
    }
  }

  #emitLiteral(frame: RdfXmlFrame, text: string, datatype: string): void {
    this.#statements.emitProperty(frame, text, "literal", datatype === "" ? languageOf(frame) : "", datatype);
  }

  #endCollection(frame: RdfXmlFrame): void {
    const nil = `${RDF}nil`;
    if (frame.lastCell === "") this.#statements.emitProperty(frame, nil, "iri");
    else this.#statements.emit(frame.lastCell, `${RDF}rest`, nil, "iri");
  }

  #push(kind: FrameKind, parent: RdfXmlFrame): RdfXmlFrame {
    const frame = new RdfXmlFrame(kind, parent);
    this.#frames.push(frame);
    return frame;
  }

  #top(): RdfXmlFrame {
    const frame = this.#frames.at(-1);
    if (frame === undefined) throw new SyntaxProblem("element after the end of the document");
    return frame;
  }
}

function withPrefix(attributes: readonly XmlAttribute[]): readonly XmlAttribute[] {
  const isUnprefixed = ({ name }: XmlAttribute) => name.namespace === "" && UNPREFIXED.has(name.local);
  if (!attributes.some(isUnprefixed)) return attributes;
  return attributes.map(attribute => {
    if (!isUnprefixed(attribute)) return attribute;
    const { raw, local } = attribute.name;
    return { ...attribute, name: { raw, local, namespace: RDF, iri: RDF + local } };
  });
}

function kindOfProperty(parseType: string | undefined, isEmpty: boolean, version: string): FrameKind {
  if (parseType === undefined) return isEmpty ? "empty" : "property";
  if (parseType === "Resource") return "node";
  if (parseType === "Collection") return "collection";
  // Every other value means Literal.
  return parseType === "Triple" && version !== "" ? "triple" : "literal";
}

function languageOf({ language, direction, version }: RdfXmlFrame): string {
  return direction === "" || version === "" || language === "" ? language : `${language}--${direction}`;
}

function isBlank(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return false;
  }
  return true;
}
