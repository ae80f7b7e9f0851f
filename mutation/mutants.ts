/**
 * The mutants of one source file: small changes of which each should make some test fail.
 *
 * Node strips the types in place, so that every position in what acorn parses is one in the file as it was written.
 */
import { createHash } from "node:crypto";
import { stripTypeScriptTypes } from "node:module";
import { type AnyNode, parse } from "acorn";

export interface Mutant {
  /** Survives moved lines: it is made of the line's text and the change, not of the line's number. */
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

interface Change {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly after: string;
}

/** Each of these binds as tightly as its replacement, so that changing the sign alone changes nothing else. */
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

/** What Node would run of a file: its text, with blanks for its types. */
export function strippedOf(source: string): string {
  return stripTypeScriptTypes(source, { mode: "strip" });
}

export function applied(code: string, { start, end, after }: Pick<Mutant, "start" | "end" | "after">): string {
  return code.slice(0, start) + after + code.slice(end);
}

/** In the order of the text, and the same for the same text. */
export function mutantsOf(file: string, source: string): readonly Mutant[] {
  const code = strippedOf(source);
  const changes: Change[] = [];
  visit(parse(code, { ecmaVersion: "latest", sourceType: "module" }), node => changes.push(...changesOf(node, code)));
  changes.sort((a, b) => a.start - b.start || a.end - b.end || (a.after < b.after ? -1 : 1));
  const lines = source.split("\n");
  const seen = new Map<string, number>();
  return changes.map(({ kind, start, end, after }) => {
    const line = code.slice(0, start).split("\n").length;
    const before = code.slice(start, end);
    const column = start - (code.lastIndexOf("\n", start - 1) + 1);
    const text = lines[line - 1] ?? "";
    const indent = text.length - text.trimStart().length;
    const what = JSON.stringify([file, text.trim(), column - indent, before, after]);
    // The same line may be there twice.
    const turn = (seen.get(what) ?? 0) + 1;
    seen.set(what, turn);
    const id = createHash("sha256").update(`${what}${turn}`).digest("hex").slice(0, 10);
    return { id, file, line, kind, start, end, before, after };
  });
}

function changesOf(node: AnyNode, code: string): readonly Change[] {
  const textOf = ({ start, end }: { start: number; end: number }) => code.slice(start, end);
  const whole = (kind: string, after: string, { start, end }: { start: number; end: number } = node) => ({
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
      return [whole("operator", after, { start, end: start + node.operator.length })];
    }
    case "LogicalExpression":
      return [whole("logical", `((${textOf(node.left)}) ${LOGICAL[node.operator]} (${textOf(node.right)}))`)];
    case "IfStatement":
    case "ConditionalExpression":
      return ["true", "false"].map(word => whole("condition", word, node.test));
    case "WhileStatement":
      // Never ending is what `true` would do, and waiting for it teaches nothing.
      return [whole("condition", "false", node.test)];
    case "ForStatement":
      return node.test ? [whole("condition", "false", node.test)] : [];
    case "UnaryExpression":
      return node.operator === "!" ? [whole("negation", `(${textOf(node.argument)})`)] : [];
    case "Literal":
      if (typeof node.value === "boolean") return [whole("boolean", String(!node.value))];
      return typeof node.value === "number" ? [whole("number", String(node.value + 1))] : [];
    case "ExpressionStatement":
      return node.directive === undefined ? [whole("statement", ";")] : [];
    case "MemberExpression": {
      const { object, property } = node;
      if (object.type !== "Identifier" || object.name !== "Math" || property.type !== "Identifier") return [];
      const after = MATH[property.name];
      return after === undefined ? [] : [whole("math", after, property)];
    }
    case "BlockStatement":
      // A return alone behind its condition goes with the condition; this is one at the end of several statements.
      return node.body.length < 2 ? [] : node.body.filter(isBareReturn).map(last => whole("return", ";", last));
    default:
      return [];
  }
}

function isBareReturn(node: AnyNode): boolean {
  return node.type === "ReturnStatement" && !node.argument;
}

/** Texts are only ever compared or joined: `"a" - b` would be an accident and no mutant. */
function isText(node: AnyNode): boolean {
  return node.type === "TemplateLiteral";
}

function visit(node: AnyNode, see: (node: AnyNode) => void): void {
  see(node);
  for (const child of Object.values(node).flat()) if (isNode(child)) visit(child, see);
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}
