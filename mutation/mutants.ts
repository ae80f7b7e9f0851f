/**
 * The mutants of one source file: small changes, each of which should make a test fail.
 *
 * Node strips types in place, so positions in the stripped code are positions in the source file.
 */
import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { type AnyNode, parse } from "acorn";

export interface Mutant {
  /** A hash of the file, the text of the line and the change; it stays the same when the line moves. */
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

/** One change of the text of a file. */
export interface Change {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly after: string;
}

/** Each operator has the same precedence as its replacement, so that no parentheses are needed. */
const OPERATORS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "+=": "-=",
  "-=": "+=",
  "*=": "/=",
  "/=": "*=",
};
const LOGICAL: Readonly<Record<string, string>> = { "&&": "||", "||": "&&", "??": "&&" };
const MATH: Readonly<Record<string, string>> = {
  min: "max",
  max: "min",
  ceil: "floor",
  floor: "ceil",
  round: "floor",
  trunc: "ceil",
};

/** The code that Node runs: the source with spaces in place of types. */
export function strippedOf(source: string): string {
  return stripTypeScriptTypes(source, { mode: "strip" });
}

export function applied(code: string, { start, end, after }: Pick<Mutant, "start" | "end" | "after">): string {
  return code.slice(0, start) + after + code.slice(end);
}

/** In the order of the source; deterministic. */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const code = strippedOf(source);
  const changes: Change[] = [];
  visit(treeOf(code), node => changes.push(...changesOf(node, code)));
  changes.sort((a, b) => a.start - b.start || a.end - b.end || (a.after < b.after ? -1 : 1));
  const lines = source.split("\n");
  const seen = new Map<string, number>();
  return changes.map(({ kind, start, end, after }) => {
    const line = code.slice(0, start).split("\n").length;
    const before = code.slice(start, end);
    const column = start - (code.lastIndexOf("\n", start - 1) + 1);
    const text = lines[line - 1] ?? "";
    const indent = text.length - text.trimStart().length;
    const identity = JSON.stringify([file, text.trim(), column - indent, before, after]);
    // The same line may occur more than once.
    const occurrence = (seen.get(identity) ?? 0) + 1;
    seen.set(identity, occurrence);
    const id = createHash("sha256").update(`${identity}${occurrence}`).digest("hex").slice(0, 10);
    return { id, file, line, kind, start, end, before, after };
  });
}

export function treeOf(code: string): AnyNode {
  return parse(code, { ecmaVersion: "latest", sourceType: "module" });
}

/** The changes at a node, without those at its children. */
export function changesOf(node: AnyNode, code: string): readonly Change[] {
  const textOf = ({ start, end }: { start: number; end: number }) => code.slice(start, end);
  const replace = (kind: string, after: string, { start, end }: { start: number; end: number } = node) => ({
    kind,
    start,
    end,
    after,
  });
  switch (node.type) {
    case "BinaryExpression":
    case "AssignmentExpression": {
      const after = OPERATORS[node.operator];
      if (after === undefined || [node.left, node.right].some(isText)) return [];
      const start = code.indexOf(node.operator, node.left.end);
      return [replace("operator", after, { start, end: start + node.operator.length })];
    }
    case "LogicalExpression":
      return [replace("logical", `((${textOf(node.left)}) ${LOGICAL[node.operator]} (${textOf(node.right)}))`)];
    case "IfStatement":
    case "ConditionalExpression":
      return ["true", "false"].map(word => replace("condition", word, node.test));
    case "WhileStatement":
      // `true` would only make an endless loop.
      return [replace("condition", "false", node.test)];
    case "ForStatement":
      return node.test ? [replace("condition", "false", node.test)] : [];
    case "UnaryExpression":
      return node.operator === "!" ? [replace("negation", `(${textOf(node.argument)})`)] : [];
    case "Literal":
      if (typeof node.value === "boolean") return [replace("boolean", String(!node.value))];
      return typeof node.value === "number" ? [replace("number", String(node.value + 1))] : [];
    case "ExpressionStatement":
      return node.directive === undefined ? [replace("statement", ";")] : [];
    case "MemberExpression": {
      const { object, property } = node;
      if (object.type !== "Identifier" || object.name !== "Math" || property.type !== "Identifier") return [];
      const after = MATH[property.name];
      return after === undefined ? [] : [replace("math", after, property)];
    }
    case "BlockStatement":
      // A lone return behind a condition is covered by the mutants of the condition.
      return node.body.length < 2 ? [] : node.body.filter(isBareReturn).map(last => replace("return", ";", last));
    default:
      return [];
  }
}

function isBareReturn(node: AnyNode): boolean {
  return node.type === "ReturnStatement" && !node.argument;
}

/** Strings are only compared or joined: `"a" - b` would not be a useful mutant. */
function isText(node: AnyNode): boolean {
  return node.type === "TemplateLiteral";
}

/** Calls `callback` for each node of a tree, parents first. */
export function visit(node: AnyNode, callback: (node: AnyNode, parent?: AnyNode) => void, parent?: AnyNode): void {
  callback(node, parent);
  for (const child of Object.values(node).flat()) if (isNode(child)) visit(child, callback, node);
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
