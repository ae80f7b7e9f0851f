import { SyntaxProblem } from "./syntax-problem.ts";

const PREDEFINED: ReadonlyMap<string, string> = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"],
]);
const ENTITY_MAX = 1024;
const ENTITIES_MAX = 10_000;

/**
 * The entities that a document type declares: `<!ENTITY owl "http://www.w3.org/2002/07/owl#">`. Their values may refer
 * to entities declared before. Parameter entities and external entities are ignored: no file is read. The length of a
 * value is limited, because entities that contain entities can grow without end.
 */
export function declaredEntities(doctype: string): ReadonlyMap<string, string> {
  const entities = new Map<string, string>();
  let at = doctype.indexOf("[");
  if (at < 0) return entities;
  for (;;) {
    at = doctype.indexOf("<!", at);
    if (at < 0) return entities;
    if (doctype.startsWith("<!--", at)) {
      const end = doctype.indexOf("-->", at + 4);
      if (end < 0) return entities;
      at = end + 3;
      continue;
    }
    const declaration = new Declaration(doctype, at + 2);
    if (declaration.word() === "ENTITY") {
      const name = declaration.word();
      const value = declaration.quoted();
      // A document may declare the predefined ones again, with the same meaning.
      const isNew = name !== "" && !entities.has(name) && !PREDEFINED.has(name);
      if (isNew && value !== undefined) entities.set(name, expanded(value, entities));
      if (entities.size > ENTITIES_MAX) throw new SyntaxProblem(`more than ${ENTITIES_MAX} entities declared`);
    }
    at = declaration.end();
  }
}

function expanded(value: string, known: ReadonlyMap<string, string>): string {
  let text = "";
  let at = 0;
  while (at < value.length) {
    const start = value.indexOf("&", at);
    const end = start < 0 ? -1 : value.indexOf(";", start);
    if (end < 0) break;
    const name = value.slice(start + 1, end);
    text += value.slice(at, start) + (character(name) ?? known.get(name) ?? PREDEFINED.get(name) ?? `&${name};`);
    checkLength(text);
    at = end + 1;
  }
  text += value.slice(at);
  checkLength(text);
  return text;
}

function checkLength(text: string): void {
  if (text.length > ENTITY_MAX) throw new SyntaxProblem(`entity longer than ${ENTITY_MAX} characters`);
}

function character(name: string): string | undefined {
  const code = /^#x[0-9a-f]{1,6}$/i.test(name)
    ? Number.parseInt(name.slice(2), 16)
    : /^#\d{1,7}$/.test(name)
      ? Number(name.slice(1))
      : undefined;
  return code === undefined || code > 0x10ffff ? undefined : String.fromCodePoint(code);
}

/** Reads the words and quoted values of one declaration. */
class Declaration {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  word(): string {
    this.#skipSpace();
    const start = this.#at;
    while (this.#at < this.#text.length && !/[\s>"'[\]]/.test(this.#text.charAt(this.#at))) this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  quoted(): string | undefined {
    this.#skipSpace();
    const quote = this.#text.charAt(this.#at);
    if (quote !== '"' && quote !== "'") return undefined;
    const end = this.#text.indexOf(quote, this.#at + 1);
    if (end < 0) return undefined;
    const value = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    return value;
  }

  /** The position after the declaration: quoted values may contain ">". */
  end(): number {
    for (;;) {
      const letter = this.#text.charAt(this.#at);
      if (letter === "" || letter === ">") return this.#at + 1;
      if ((letter === '"' || letter === "'") && this.quoted() !== undefined) continue;
      this.#at += 1;
    }
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text.charAt(this.#at))) this.#at += 1;
  }
}
