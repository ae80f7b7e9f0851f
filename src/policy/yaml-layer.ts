import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type YAMLMap } from "yaml";
import type { ConfigProblem } from "../errors.ts";
import { type Assignment, canonicalHostIfValid } from "./layer.ts";

const MAX_CHARACTERS = 1_000_000;
/** Counts aliases each time they are followed, so that a few lines cannot stand for millions. */
const MAX_NODES = 250_000;
const MAX_DEPTH = 12;
/** Where the syntax is wrong once, much of what follows seems wrong, too. */
const MAX_SYNTAX_PROBLEMS = 5;
const FORBIDDEN_KEYS: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

export interface PolicyLayer {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly ConfigProblem[];
}

/** Reads the text of a policy file: every value with its line, and everything that is wrong with it as YAML. */
export function readYamlLayer(text: string, file: string): PolicyLayer {
  if (text.length > MAX_CHARACTERS) {
    const message = `a policy of more than ${MAX_CHARACTERS} characters is refused`;
    return { assignments: [], problems: [{ where: file, path: "", message }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false, merge: false });
  const reader = new YamlReader(offset => `${file}:${lines.linePos(offset).line}`);
  const syntaxProblems = [...document.errors, ...document.warnings];
  for (const { pos, message } of syntaxProblems.slice(0, MAX_SYNTAX_PROBLEMS)) reader.addProblem(pos[0], [], message);
  const [next] = syntaxProblems.slice(MAX_SYNTAX_PROBLEMS);
  if (next !== undefined)
    reader.addProblem(
      next.pos[0],
      [],
      `and ${syntaxProblems.length - MAX_SYNTAX_PROBLEMS} more; is this a policy in YAML?`,
    );
  if (document.errors.length === 0) reader.read(document.contents, []);
  return reader;
}

class YamlReader implements PolicyLayer {
  readonly assignments: Assignment[] = [];
  readonly problems: ConfigProblem[] = [];
  readonly #sourceAt: (offset: number) => string;
  readonly #anchors = new Map<string, unknown>();
  #nodes = 0;
  #isOverLimit = false;

  constructor(sourceAt: (offset: number) => string) {
    this.#sourceAt = sourceAt;
  }

  addProblem(offset: number, path: readonly string[], message: string): void {
    this.problems.push({ where: this.#sourceAt(offset), path: path.join("."), message });
  }

  read(node: unknown, path: readonly string[], offset = 0): void {
    const at = offsetOf(node) ?? offset;
    if (!this.#count(at, path)) return;
    const held = this.#resolveAlias(node, path, at);
    if (path.length === 0 && !isMap(held)) {
      // A file with nothing but comments says nothing, and that is fine.
      if (held !== null)
        this.addProblem(at, path, "expected a map: a policy is made of keys such as hosts and defaults");
      return;
    }
    // A map names its place, so that what is wrong with it can be told by its own line.
    const where = this.#sourceAt(isMap(held) ? offset : at);
    if (path.length > 0)
      this.assignments.push({ path, value: isMap(held) ? {} : this.#valueOf(held, path, at), where });
    if (isMap(held)) this.#readMap(held, path, at);
  }

  #readMap(map: YAMLMap, path: readonly string[], at: number): void {
    const seen = new Set<string>();
    for (const { key, value } of map.items) {
      const keyOffset = offsetOf(key) ?? at;
      const name = isScalar(key) && typeof key.value === "string" ? key.value : "";
      if (name === "" || FORBIDDEN_KEYS.has(name)) {
        this.addProblem(
          keyOffset,
          path,
          `${JSON.stringify(isScalar(key) ? key.value : "?")} cannot be a key; put quotes around what is meant as text`,
        );
        continue;
      }
      const canonical = path.length === 1 && path[0] === "hosts" ? canonicalHostIfValid(name) : name;
      if (seen.has(canonical)) this.addProblem(keyOffset, [...path, name], `${canonical} is listed twice`);
      seen.add(canonical);
      this.read(value, [...path, canonical], keyOffset);
    }
  }

  /** What an alias stands for. Anchors are noted as they are met: an alias can only mean an earlier one. */
  #resolveAlias(node: unknown, path: readonly string[], at: number): unknown {
    if (!isAlias(node)) {
      const { anchor } = (node ?? {}) as { readonly anchor?: string };
      if (anchor !== undefined) this.#anchors.set(anchor, node);
      return node;
    }
    if (!this.#anchors.has(node.source))
      this.addProblem(at, path, `there is no anchor ${JSON.stringify(node.source)} before this`);
    return this.#anchors.get(node.source) ?? null;
  }

  #valueOf(node: unknown, path: readonly string[], at: number, depth = 0): unknown {
    if (depth > MAX_DEPTH || !this.#count(at, path)) {
      if (depth > MAX_DEPTH) this.addProblem(at, path, `nested deeper than ${MAX_DEPTH}`);
      return null;
    }
    const held = this.#resolveAlias(node, path, at);
    if (isScalar(held)) return held.value;
    if (isSeq(held)) return held.items.map(item => this.#valueOf(item, path, offsetOf(item) ?? at, depth + 1));
    // A map inside a list has no place in a policy; the schema says so.
    return isMap(held) ? {} : null;
  }

  /** False beyond the limits; said once, because what is beyond them is not looked at. */
  #count(at: number, path: readonly string[]): boolean {
    this.#nodes += 1;
    if (this.#nodes <= MAX_NODES && path.length <= MAX_DEPTH) return true;
    if (!this.#isOverLimit)
      this.addProblem(at, path, `more than ${MAX_NODES} values, or nested deeper than ${MAX_DEPTH}`);
    this.#isOverLimit = true;
    this.#nodes = MAX_NODES + 1;
    return false;
  }
}

function offsetOf(node: unknown): number | undefined {
  return typeof node === "object" && node !== null && "range" in node
    ? (node.range as [number] | undefined)?.[0]
    : undefined;
}
