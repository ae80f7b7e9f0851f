/**
 * The code of a file with all its mutants in it, one of which `switch.ts` selects at run time. Every loop and function
 * counts its steps.
 */
import type { AnyNode } from "acorn";
import { applied, type Change, changesOf, mutantsOf, strippedOf, treeOf, visit } from "./mutants.ts";

/** Text around a range of the code. */
interface Wrap {
  readonly start: number;
  readonly end: number;
  readonly before: string;
  readonly after: string;
}

const SWITCH = new URL("./switch.ts", import.meta.url).href;
const IMPORT = `import { active as __active, measuring as __measuring, reach as __reach, compare as __compare, step as __step } from ${JSON.stringify(SWITCH)}; `;
/** Their evaluation a second time changes nothing. */
const PURE = new Set<string>([
  "Identifier",
  "PrivateIdentifier",
  "MemberExpression",
  "ChainExpression",
  "Literal",
  "ThisExpression",
  "BinaryExpression",
  "LogicalExpression",
  "UnaryExpression",
  "ConditionalExpression",
]);
/** Their replacement cannot throw where the original code does not. */
const COMPARABLE = new Set(["operator", "condition"]);

/** Without the changes of a file that is only loaded by the tests. */
export function steppedOf(source: string): string {
  const code = strippedOf(source);
  return IMPORT + wrapped(code, stepsOf(treeOf(code)));
}

/** `first` is the number of the first mutant of the file; the others follow in the order of `mutantsOf`. */
export function instrumentedOf(source: string, first: number): string {
  const code = strippedOf(source);
  const tree = treeOf(code);
  const numbers = Map.groupBy(
    mutantsOf("", source).map(({ start, end, after }, index) => ({ key: `${start}:${end}:${after}`, index })),
    ({ key }) => key,
  );
  const numberOf = ({ start, end, after }: Change) =>
    first + (numbers.get(`${start}:${end}:${after}`)?.pop()?.index ?? Number.NaN);
  const wraps: Wrap[] = [...stepsOf(tree)];
  visit(tree, (node, parent) => {
    const sites = Map.groupBy(changesOf(node, code), change => siteOf(change, node));
    for (const [range, changes] of sites) wraps.push(wrapOf(range, changes));
    function siteOf(change: Change, around: AnyNode): AnyNode {
      if (change.kind === "operator" || change.kind === "math") return around;
      if (change.kind === "return" && around.type === "BlockStatement")
        return around.body.find(({ start }) => start === change.start) ?? around;
      return change.kind === "condition" && "test" in around && around.test ? around.test : around;
    }
    function wrapOf(site: AnyNode, changes: readonly Change[]): Wrap {
      const { start, end } = site;
      const text = code.slice(start, end);
      const numbered = changes.map(change => ({
        change,
        number: numberOf(change),
        text: applied(text, { start: change.start - start, end: change.end - start, after: change.after }),
      }));
      if (site.type === "ExpressionStatement" || site.type === "ReturnStatement") {
        const number = numbered[0]?.number;
        return { start, end, before: `{if(__active!==${number}){__measuring&&__reach(${number});`, after: "}}" };
      }
      const choices = numbered.map(({ number, text }) => `__active===${number}?(${text}):`).join("");
      const marks = numbered.map(({ change, number, text: changed }) => {
        if (!COMPARABLE.has(change.kind) || !isPure(site)) return `__reach(${number})`;
        // Only whether a condition holds matters.
        const not = change.kind === "condition" ? "!" : "";
        return `__compare(${number},${not}(${text}),${not}(${changed}))`;
      });
      const [open, close] = isKey(site, parent) ? ["[", "]"] : ["", ""];
      return {
        start,
        end,
        before: `${open}(${choices}(__measuring&&(${marks.join(",")}),`,
        after: `))${close}`,
      };
    }
  });
  return IMPORT + wrapped(code, wraps);
}

function stepsOf(tree: AnyNode): readonly Wrap[] {
  const wraps: Wrap[] = [];
  visit(tree, node => {
    if ("body" in node && node.body && "type" in node.body && node.body.type === "BlockStatement") {
      const { start } = node.body;
      wraps.push({ start: start + 1, end: start + 1, before: "__step();", after: "" });
    } else if ((node.type === "WhileStatement" || node.type === "ForStatement") && node.test) {
      const { start, end } = node.test;
      wraps.push({ start, end, before: "(__step(),(", after: "))" });
    }
  });
  return wraps;
}

function isPure(node: AnyNode): boolean {
  let pure = true;
  visit(node, child => {
    if (!PURE.has(child.type) || (child.type === "UnaryExpression" && child.operator === "delete")) pure = false;
  });
  return pure;
}

function isKey(node: AnyNode, parent: AnyNode | undefined): boolean {
  return parent !== undefined && "key" in parent && parent.key === node && !("computed" in parent && parent.computed);
}

/** Parents come before their children in `wraps`, so the text of a parent is the outer one where both begin or end. */
function wrapped(code: string, wraps: readonly Wrap[]): string {
  const before = new Map<number, string>();
  const after = new Map<number, string>();
  for (const wrap of wraps) {
    before.set(wrap.start, (before.get(wrap.start) ?? "") + wrap.before);
    after.set(wrap.end, wrap.after + (after.get(wrap.end) ?? ""));
  }
  const at = [...new Set([0, ...before.keys(), ...after.keys(), code.length])].sort((a, b) => a - b);
  return at
    .map(
      (start, index) =>
        (after.get(start) ?? "") + (before.get(start) ?? "") + code.slice(start, at[index + 1] ?? code.length),
    )
    .join("");
}
