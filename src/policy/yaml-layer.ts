import {
  type CollectionTag,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from "yaml";
import type { ConfigProblem } from "../errors.ts";
import {
  type Assignment,
  canonicalKey,
  FORBIDDEN_KEYS,
  MAX_CHARACTERS,
  MAX_DEPTH,
  MAX_NODES,
  type PolicyLayer,
} from "./layer.ts";
import { noteAfter } from "./line-note.ts";
import { ProblemList } from "./problem-list.ts";

/** One syntax error usually causes many others after it. */
const MAX_SYNTAX_PROBLEMS = 5;
/** `members: !replace [...]` replaces the members of the shipped service; without the tag they are added. */
const REPLACE_TAG: CollectionTag = { tag: "!replace", collection: "seq", resolve: list => list };

/** Messages by error code of the parser, in place of its own ones, which name functions and limits of the parser. */
const PLAIN_MESSAGES: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "a second document begins here; a policy file has one, so remove the line ---",
  RESOURCE_EXHAUSTION: `nested more than ${MAX_DEPTH} levels deep`,
};

/** Reads the text of a policy file: every value with its line, and every problem of the YAML. */
export function readYamlLayer(text: string, file: string): PolicyLayer {
  if (text.length > MAX_CHARACTERS) {
    const message = `the file has more than ${MAX_CHARACTERS} characters`;
    return { assignments: [], problems: [{ where: file, path: "", message }] };
  }
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    merge: false,
    customTags: [REPLACE_TAG],
  });
  const reader = new YamlReader(text, offset => `${file}:${lines.linePos(offset).line}`);
  const syntaxProblems = [...document.errors, ...document.warnings];
  for (const { pos, code, message } of syntaxProblems.slice(0, MAX_SYNTAX_PROBLEMS))
    reader.addProblem(pos[0], [], PLAIN_MESSAGES[code] ?? message);
  const [next] = syntaxProblems.slice(MAX_SYNTAX_PROBLEMS);
  if (next !== undefined) {
    const count = syntaxProblems.length - MAX_SYNTAX_PROBLEMS;
    reader.addProblem(next.pos[0], [], `and ${count} more syntax problem${count === 1 ? "" : "s"}; is this file YAML?`);
  }
  if (document.errors.length === 0) reader.read(document.contents, []);
  return reader;
}

/** One entry of a map whose key is valid. */
interface MapEntry {
  /** The key in its canonical spelling. */
  readonly name: string;
  readonly key: Node;
  readonly value: unknown;
}

class YamlReader implements PolicyLayer {
  readonly assignments: Assignment[] = [];
  readonly #text: string;
  readonly #problems = new ProblemList();
  readonly #sourceAt: (offset: number) => string;
  readonly #anchors = new Map<string, unknown>();
  #nodes = 0;
  #isOverLimit = false;

  constructor(text: string, sourceAt: (offset: number) => string) {
    this.#text = text;
    this.#sourceAt = sourceAt;
  }

  get problems(): readonly ConfigProblem[] {
    return this.#problems.problems;
  }

  addProblem(offset: number, path: readonly string[], message: string): void {
    this.#problems.add(() => ({ where: this.#sourceAt(offset), path: path.join("."), message }));
  }

  /** @param key the key of the node; undefined for the whole document */
  read(node: unknown, path: readonly string[], key?: Node, outerNote?: string): void {
    const keyOffset = offsetOf(key) ?? 0;
    const at = offsetOf(node) ?? keyOffset;
    if (!this.#count(at, path)) return;
    const target = this.#resolveAlias(node, path, at);
    if (path.length === 0 && !isMap(target)) {
      // A file that contains only comments is valid and sets nothing.
      if (target !== null) this.addProblem(at, path, "expected a map of keys and values");
      return;
    }
    const note = this.#noteOf(node, key, path.length) ?? outerNote;
    // A map is recorded too, so that a problem of the map itself has a line.
    const where = this.#sourceAt(isMap(target) ? keyOffset : at);
    if (path.length > 0) {
      const value = isMap(target) ? {} : this.#valueOf(target, path, at);
      const isReplacing = isSeq(target) && target.tag === REPLACE_TAG.tag;
      this.assignments.push({ path: isReplacing ? [...path, "replace"] : path, value, where, note });
    }
    if (isMap(target)) this.#readMap(target, path, at, note);
  }

  #readMap(map: YAMLMap, path: readonly string[], at: number, note: string | undefined): void {
    for (const { name, key, value } of this.#entriesOf(map, path, at)) this.read(value, [...path, name], key, note);
  }

  /** The entries of a map whose keys are valid, with one spelling of each key. Adds the problems of the keys. */
  *#entriesOf(map: YAMLMap, path: readonly string[], at: number): Generator<MapEntry> {
    const seen = new Set<string>();
    for (const { key, value } of map.items) {
      const keyOffset = offsetOf(key) ?? at;
      const isText = isScalar(key) && typeof key.value === "string";
      const written = isText ? String(key.value) : "";
      if (written === "" || FORBIDDEN_KEYS.has(written)) {
        const shown = JSON.stringify(isScalar(key) ? key.value : "?");
        this.addProblem(
          keyOffset,
          path,
          `invalid key ${shown}: ${isText ? "this name is not allowed" : "keys are text; put it in quotes"}`,
        );
        continue;
      }
      const name = canonicalKey(path, written);
      if (seen.has(name)) this.addProblem(keyOffset, [...path, written], `duplicate entry ${name}`);
      seen.add(name);
      yield { name, key: key as Node, value };
    }
  }

  /**
   * The note of a value: the comment on its line. A map or list that begins on the next line has the comment on the
   * line of its key. Values inside a map or list without their own note inherit this note. A comment on the line of a
   * section such as `hosts:` is no note, because notes say where a limit was read.
   */
  #noteOf(node: unknown, key: Node | undefined, depth: number): string | undefined {
    const isBelowKey = (isMap(node) || isSeq(node)) && node.flow !== true;
    if (!isBelowKey) return noteAfter(this.#text, (node as Node | null)?.range?.[1] ?? this.#text.length);
    const keyEnd = key?.range?.[1];
    return depth < 2 || keyEnd === undefined ? undefined : noteAfter(this.#text, this.#text.indexOf(":", keyEnd) + 1);
  }

  /**
   * If the node is an alias, returns the node that it refers to. Otherwise records the anchor of the node, for aliases
   * later in the file, and returns the node.
   */
  #resolveAlias(node: unknown, path: readonly string[], at: number): unknown {
    if (!isAlias(node)) {
      const { anchor } = (node ?? {}) as { readonly anchor?: string };
      if (anchor !== undefined) this.#anchors.set(anchor, node);
      return node;
    }
    if (!this.#anchors.has(node.source))
      this.addProblem(at, path, `unknown anchor ${JSON.stringify(node.source)}: define it above this line`);
    return this.#anchors.get(node.source) ?? null;
  }

  /** `read` has counted the node itself; the items of a list are counted here, because aliases can repeat them. */
  #valueOf(node: unknown, path: readonly string[], at: number, depth = 0): unknown {
    if (depth > 0 && !this.#count(at, path, depth)) return null;
    const target = this.#resolveAlias(node, path, at);
    if (isScalar(target)) return target.value;
    if (isSeq(target)) return target.items.map(item => this.#valueOf(item, path, offsetOf(item) ?? at, depth + 1));
    if (!isMap(target)) return null;
    const entries = Array.from(
      this.#entriesOf(target, path, at),
      ({ name, value }) => [name, this.#valueOf(value, path, offsetOf(value) ?? at, depth + 1)] as const,
    );
    return Object.fromEntries(entries);
  }

  /**
   * False beyond the limits. After the first value beyond a limit, no later value of the file is read, so there is one
   * problem.
   */
  #count(at: number, path: readonly string[], listDepth = 0): boolean {
    this.#nodes += 1;
    const isTooMany = this.#nodes > MAX_NODES;
    if (!isTooMany && path.length + listDepth <= MAX_DEPTH) return true;
    const limit = isTooMany
      ? `more than ${MAX_NODES} values (an alias counts each time)`
      : `nested more than ${MAX_DEPTH} levels deep`;
    if (!this.#isOverLimit) this.addProblem(at, path, limit);
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
