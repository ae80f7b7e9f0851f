import { SaxesParser } from "@rubensworks/saxes";
import { checkDepth, checkPending } from "./limits.ts";
import { SyntaxProblem, withLine } from "./syntax-problem.ts";
import { declaredEntities } from "./xml-entities.ts";
import { type XmlName, XmlNamespaces } from "./xml-namespaces.ts";

export interface XmlAttribute {
  readonly name: XmlName;
  readonly value: string;
}

/** Receives the elements and the text of a document. */
export interface XmlHandler {
  open(name: XmlName, attributes: readonly XmlAttribute[]): void;
  text?(text: string): void;
  close?(name: string): void;
}

/** Entities may expand to 20 times the text that was read, and to a megabyte more. Real files reach about 6 times. */
const EXPANSION_RATIO = 20;
const EXPANSION_FREE = 1_000_000;
const HALF_PAIR = "half of a surrogate pair";

/**
 * Reads XML with namespaces and declared entities. saxes can resolve namespaces itself, but it walks up all open
 * elements for each name, so a deeply nested file would occupy it for minutes.
 */
export class XmlReader {
  readonly #sax = new SaxesParser({ xmlns: false, position: true });
  readonly namespaces = new XmlNamespaces();
  #depth = 0;
  #readLength = 0;
  /** The length of all entities that were expanded so far. */
  #expandedLength = 0;
  /** `#readLength` at the last event, to limit the text that saxes holds. */
  #lengthAtEvent = 0;
  /** The first half of a surrogate pair at the end of the last chunk; else empty. */
  #firstHalf = "";

  constructor(handler: XmlHandler) {
    const sax = this.#sax;
    sax.on("error", error => {
      // saxes writes "line:column: message".
      throw new SyntaxProblem(error.message.replace(/^\d{1,12}:\d{1,12}: /, ""), sax.line);
    });
    sax.on("doctype", doctype => this.#defineEntities(doctype));
    sax.on("opentag", tag => {
      this.#lengthAtEvent = this.#readLength;
      this.#depth += 1;
      checkDepth(this.#depth, "elements");
      // Without `xmlns` every attribute is a string.
      const values = tag.attributes as Readonly<Record<string, string>>;
      this.namespaces.open(values);
      const attributes: XmlAttribute[] = [];
      for (const raw in values) {
        if (raw.startsWith("xmlns") && (raw.length === 5 || raw[5] === ":")) continue;
        attributes.push({ name: this.namespaces.attribute(raw), value: values[raw] ?? "" });
      }
      if (attributes.length > 1) checkDistinct(attributes);
      handler.open(this.namespaces.element(tag.name), attributes);
    });
    sax.on("text", text => {
      this.#lengthAtEvent = this.#readLength;
      if (this.#depth > 0) handler.text?.(text);
    });
    sax.on("cdata", text => handler.text?.(text));
    sax.on("comment", () => {
      this.#lengthAtEvent = this.#readLength;
    });
    sax.on("closetag", tag => {
      this.#lengthAtEvent = this.#readLength;
      this.#depth -= 1;
      handler.close?.(tag.name);
      this.namespaces.close();
    });
  }

  get line(): number {
    return this.#sax.line;
  }

  write(text: string): void {
    this.#readLength += text.length;
    withLine(this, () => {
      this.#checkPairs(text);
      this.#sax.write(text);
    });
    checkPending(this.#readLength - this.#lengthAtEvent, this.#sax.line);
  }

  end(): void {
    withLine(this, () => {
      if (this.#firstHalf !== "") throw new SyntaxProblem(HALF_PAIR);
      this.#sax.close();
    });
  }

  /** saxes throws a RangeError for half of a surrogate pair. A pair may span two chunks. */
  #checkPairs(chunk: string): void {
    const text = this.#firstHalf + chunk;
    const last = text.charCodeAt(text.length - 1);
    this.#firstHalf = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : "";
    if (!text.slice(0, text.length - this.#firstHalf.length).isWellFormed()) throw new SyntaxProblem(HALF_PAIR);
  }

  #defineEntities(doctype: string): void {
    for (const [name, value] of declaredEntities(doctype)) {
      // saxes reads the property at each use of the entity.
      const expand = () => {
        this.#expandedLength += value.length;
        if (this.#expandedLength > EXPANSION_FREE + EXPANSION_RATIO * this.#readLength) {
          throw new SyntaxProblem("entities expand the file to more than 20 times its size");
        }
        return value;
      };
      Object.defineProperty(this.#sax.ENTITIES, name, { get: expand, configurable: true });
    }
  }
}

/** saxes compares the names as written. Two names can still be equal if their prefixes have the same namespace. */
function checkDistinct(attributes: readonly XmlAttribute[]): void {
  const prefixed = attributes.filter(({ name }) => name.namespace !== "");
  if (prefixed.length < 2) return;
  const names = new Set(prefixed.map(({ name }) => name.iri));
  if (names.size < prefixed.length) throw new SyntaxProblem("an element has the same attribute twice");
}
