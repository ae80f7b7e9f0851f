import assert from "node:assert/strict";
import { test } from "node:test";
import { instrumentedOf } from "./instrumented.ts";
import { applied, mutantsOf, strippedOf } from "./mutants.ts";
import { activate, deactivate, limitSteps, measured, reserve } from "./switch.ts";

/** Every kind of change, some within others. */
const SOURCE = `
const names: Record<number, string> = { 1: "one", 2: "two" };
class Sum {
  #total = 0;
  add(x: number): void {
    if (x < 0) return;
    this.#total += x;
  }
  get total(): number { return this.#total; }
}
export function result(a: number, b: number): unknown {
  const sum = new Sum();
  sum.add(a);
  sum.add(b);
  let rounds = 0;
  for (let n = a; n < b && rounds < 9; n += 1) rounds += 1;
  while (rounds > 4) rounds -= 1;
  if (a > 1 || (b > 1 && !(a === b))) sum.add(Math.min(a, b) * 2 - 1);
  else if (a === 0) rounds = -1;
  const text = a > b ? names[a % 3] : (names[b] ?? true);
  return [sum.total, rounds, text, [a, b].map(x => x / 2 + 1)];
}
`;
const INPUTS = [-1, 0, 1, 2, 3].flatMap(a => [-1, 0, 1, 2, 3].map(b => [a, b] as const));
type Toy = { result(a: number, b: number): unknown };

const imported = async (code: string): Promise<Toy> => import(`data:text/javascript,${encodeURIComponent(code)}`);
const resultsOf = ({ result }: Toy) => INPUTS.map(([a, b]) => result(a, b));
const mutants = mutantsOf("toy.ts", SOURCE);
const first = reserve(mutants.length);
const instrumented = await imported(instrumentedOf(SOURCE, first));

test("with each mutant in force, the instrumented code does what the changed code does", async () => {
  const original = await imported(strippedOf(SOURCE));
  assert.deepEqual(resultsOf(instrumented), resultsOf(original));
  for (const [index, mutant] of mutants.entries()) {
    // Constants are changed only by an import.
    if (mutant.line === 2) continue;
    const changed = await imported(applied(strippedOf(SOURCE), mutant));
    activate(first + index);
    try {
      assert.deepEqual(resultsOf(instrumented), resultsOf(changed), `line ${mutant.line}: ${mutant.after}`);
    } finally {
      deactivate();
    }
  }
});

test("a mutant is reached only where its value differs from the original one", async () => {
  const reachedWith = async (a: number, b: number) => {
    const numbers = await measured(async () => void instrumented.result(a, b));
    return numbers.map(number => mutants[number - first]).map(mutant => `${mutant?.before} -> ${mutant?.after}`);
  };
  assert.ok((await reachedWith(2, 1)).includes("a > b -> false"));
  assert.ok(!(await reachedWith(2, 1)).includes("a > b -> true"));
  assert.ok(!(await reachedWith(1, 2)).includes("a > b -> false"));
});

test("too many steps end an endless loop", () => {
  const endless = mutants.findIndex(({ before, after }) => before === "-=" && after === "+=");
  activate(first + endless);
  limitSteps(1000);
  try {
    assert.throws(() => instrumented.result(0, 9), /too many steps/);
  } finally {
    limitSteps(Number.POSITIVE_INFINITY);
    deactivate();
  }
});
