import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { canonicalHost } from "../core/host.ts";
import type { ConfigProblem } from "../errors.ts";
import type { Assignment } from "./layer.ts";

const MAX_CHARACTERS = 1_000_000;
/** Counts aliases each time they are followed, so that a few lines cannot stand for millions. */
const MAX_NODES = 50_000;
const MAX_DEPTH = 12;
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

export interface YamlLayer {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
}

/** Reads the text of a policy file: every value with its line, and everything that is wrong with it as YAML. */
export function readYamlLayer(text: string, file: string): YamlLayer {
  if (text.length > MAX_CHARACTERS) {
    const message = `a policy of more than ${MAX_CHARACTERS} characters is refused`;
    return { assignments: [], problems: [{ where: file, path: "", message }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, merge: false });
  const reader = new Reader(document, offset => `${file}:${lines.linePos(offset).line}`);
  for (const { pos, message } of [...document.errors, ...document.warnings]) reader.complain(pos[0], [], message);
  if (document.errors.length === 0) reader.read(document.contents, []);
  return reader;
}

class Reader implements YamlLayer {
  readonly assignments: Assignment[] = [];
  readonly problems: ConfigProblem[] = [];
  readonly #document: Document;
  readonly #whereIs: (offset: number) => string;
  #nodes = 0;

  constructor(document: Document, whereIs: (offset: number) => string) {
    this.#document = document;
    this.#whereIs = whereIs;
  }

  complain(offset: number, path: readonly string[], message: string): void {
    this.problems.push({ where: this.#whereIs(offset), path: path.join("."), message });
  }

  read(node: unknown, path: readonly string[], offset = 0): void {
    const at = offsetOf(node) ?? offset;
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES || path.length > MAX_DEPTH) {
      // Once is enough: what is beyond the limit is not looked at.
      if (this.#nodes <= MAX_NODES + 1)
        this.complain(at, path, `more than ${MAX_NODES} values, or nested deeper than ${MAX_DEPTH}`);
      this.#nodes = MAX_NODES + 1;
      return;
    }
    if (isAlias(node)) {
      this.read(node.resolve(this.#document), path, at);
      return;
    }
    if (path.length === 0 && !isMap(node)) {
      // A file with nothing but comments says nothing, and that is fine.
      if (node !== null)
        this.complain(at, path, "expected object: a policy is made of keys such as hosts and defaults");
      return;
    }
    if (!isMap(node) || node.items.length === 0) {
      this.assignments.push({ path, value: this.#valueOf(node), where: this.#whereIs(at) });
      return;
    }
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      const keyOffset = offsetOf(key) ?? at;
      const name = isScalar(key) ? String(key.value) : "";
      if (name === "" || FORBIDDEN_KEYS.has(name)) {
        this.complain(keyOffset, path, `${JSON.stringify(name)} cannot be a key`);
        continue;
      }
      const canonical = path.length === 1 && path[0] === "hosts" ? hostOr(name) : name;
      if (seen.has(canonical)) this.complain(keyOffset, [...path, name], `${canonical} is listed twice`);
      seen.add(canonical);
      this.read(value, [...path, canonical], keyOffset);
    }
  }

  #valueOf(node: unknown): unknown {
    if (isAlias(node)) return this.#valueOf(node.resolve(this.#document));
    if (isScalar(node)) return node.value;
    if (isSeq(node)) {
      this.#nodes += node.items.length;
      return this.#nodes > MAX_NODES ? [] : node.items.map(item => this.#valueOf(item));
    }
    // A map inside a list has no place in a policy; the schema says so.
    return isMap(node) ? {} : null;
  }
}

function offsetOf(node: unknown): number | undefined {
  return typeof node === "object" && node !== null && "range" in node
    ? (node.range as [number] | undefined)?.[0]
    : undefined;
}

/** The canonical host; what is none is left to the schema, which says why. */
function hostOr(name: string): string {
  try {
    return canonicalHost(name);
  } catch (error) {
    if (error instanceof RangeError) return name;
    throw error;
  }
}
