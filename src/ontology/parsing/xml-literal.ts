import { checkPending } from "./limits.ts";
import type { XmlName } from "./xml-namespaces.ts";
import type { XmlAttribute } from "./xml-reader.ts";

/**
 * The text of an XML literal, as exclusive canonical XML without comments: an element declares the namespaces of its own
 * name and attributes, unless an element around it has done so.
 */
export class XmlLiteral {
  #text = "";
  /** The declared namespaces by prefix. */
  readonly #declared = new Map<string, string>();
  /** For each open element: the declarations to undo when it closes. */
  readonly #undo: (readonly (readonly [prefix: string, namespace: string | undefined])[])[] = [];

  get text(): string {
    return this.#text;
  }

  /** How many elements are open. */
  get depth(): number {
    return this.#undo.length;
  }

  open(name: XmlName, attributes: readonly XmlAttribute[]): void {
    const declarations = this.#declare([name, ...attributes.map(attribute => attribute.name).filter(hasNamespace)]);
    const sorted = attributes.toSorted(
      (a, b) => compare(a.name.namespace, b.name.namespace) || compare(a.name.local, b.name.local),
    );
    this.#append(`<${name.raw}${declarations}${sorted.map(markup).join("")}>`);
  }

  close(raw: string): void {
    this.#append(`</${raw}>`);
    for (const [prefix, namespace] of this.#undo.pop() ?? []) {
      if (namespace === undefined) this.#declared.delete(prefix);
      else this.#declared.set(prefix, namespace);
    }
  }

  addText(text: string): void {
    this.#append(escaped(text).replaceAll(">", "&gt;"));
  }

  /** A namespace is written for many elements, so the text can become much longer than the file. */
  #append(text: string): void {
    this.#text += text;
    checkPending(this.#text.length);
  }

  /** The declarations that these names need, as attributes. */
  #declare(names: readonly XmlName[]): string {
    const used = new Map(names.map(({ raw, namespace }) => [raw.slice(0, Math.max(0, raw.indexOf(":"))), namespace]));
    const needed = [...used].filter(
      ([prefix, namespace]) => prefix !== "xml" && (this.#declared.get(prefix) ?? "") !== namespace,
    );
    this.#undo.push(needed.map(([prefix]) => [prefix, this.#declared.get(prefix)]));
    for (const [prefix, namespace] of needed) this.#declared.set(prefix, namespace);
    return needed
      .sort(([a], [b]) => compare(a, b))
      .map(([prefix, namespace]) => ` xmlns${prefix === "" ? "" : `:${prefix}`}="${escapedValue(namespace)}"`)
      .join("");
  }
}

/** An attribute without a prefix is in no namespace, whatever the default namespace is. */
function hasNamespace({ namespace }: XmlName): boolean {
  return namespace !== "";
}

function markup({ name, value }: XmlAttribute): string {
  return ` ${name.raw}="${escapedValue(value)}"`;
}

function escapedValue(value: string): string {
  return escaped(value).replaceAll('"', "&quot;").replaceAll("\t", "&#x9;").replaceAll("\n", "&#xA;");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\r", "&#xD;");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
