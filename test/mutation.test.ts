import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { mutantsOf } from "../mutation/mutants.ts";
import { MutantTrials } from "../mutation/try-mutants.ts";

const root = mkdtempSync(join(tmpdir(), "mutation-"));
after(() => rmSync(root, { recursive: true }));

const ADULT = "export const isAdult = (age: number): boolean => age >= 18;\n";
const COUNT =
  "export function countTo(end: number): number {\n  let n = 0;\n  while (n < end) n += 1;\n  return n;\n}\n";

function write(name: string, text: string): void {
  writeFileSync(join(root, name), text);
}

async function tried(file: string, source: string, testFile: string) {
  const trials = new MutantTrials({
    root,
    mutated: [file],
    budgetMs: 60_000,
    hangMs: 600_000,
    stagesOf: () => [[testFile]],
  });
  try {
    return await trials.try(file, mutantsOf(file, source));
  } finally {
    trials.close();
  }
}

test("a mutant at an untested boundary survives, and one at a tested boundary is killed by that test", async () => {
  write("adult.ts", ADULT);
  const testOf = (age: number) =>
    `import { test } from "node:test"; import { isAdult } from "./adult.ts";
     test("an adult", () => { if (!isAdult(${age})) throw new Error("no"); });`;
  write("vague.test.ts", testOf(40));
  write("exact.test.ts", testOf(18));
  const outcomes = async (name: string) =>
    (await tried("adult.ts", ADULT, name)).map(({ mutant, outcome, by }) => [mutant.after, outcome, by]);
  assert.deepEqual(await outcomes("vague.test.ts"), [
    [">", "survived", undefined],
    ["19", "survived", undefined],
  ]);
  assert.deepEqual(await outcomes("exact.test.ts"), [
    [">", "killed", "an adult"],
    ["19", "killed", "an adult"],
  ]);
});

test("a mutant in code that no test runs survives without a trial", async () => {
  const source = "export const used = () => 1;\nexport const unused = () => 2;\n";
  write("half.ts", source);
  write(
    "half.test.ts",
    `import { test } from "node:test"; import { used } from "./half.ts";
     test("used", () => { if (used() !== 1) throw new Error("no"); });`,
  );
  const results = await tried("half.ts", source, "half.test.ts");
  assert.deepEqual(
    results.map(({ mutant, outcome }) => [mutant.line, outcome]),
    [
      [1, "killed"],
      [2, "survived"],
    ],
  );
});

test("an endless loop ends by timeout and counts as killed", async () => {
  write("count.ts", COUNT);
  write(
    "count.test.ts",
    `import { test } from "node:test"; import { countTo } from "./count.ts";
     test("count", () => { if (countTo(3) !== 3 || countTo(0) !== 0) throw new Error("no"); });`,
  );
  const results = await tried("count.ts", COUNT, "count.test.ts");
  assert.equal(results.find(({ mutant }) => mutant.after === "-=")?.outcome, "time-out");
  assert.equal(
    results.some(({ outcome }) => outcome === "survived"),
    false,
  );
});

test("a mutant that leaves a promise pending is killed, and one that ends the process", async () => {
  const source =
    "export const start = (resolve: () => void, end: boolean): void => {\n  if (end) process.exit();\n  resolve();\n};\n";
  write("start.ts", source);
  write(
    "start.test.ts",
    `import { test } from "node:test"; import { start } from "./start.ts";
     test("start", () => new Promise(resolve => start(() => resolve(), false)));`,
  );
  const results = await tried("start.ts", source, "start.test.ts");
  assert.deepEqual(
    results.map(({ mutant, outcome, by }) => [mutant.line, mutant.after, outcome, by]),
    [
      [2, "false", "survived", undefined],
      [2, "true", "killed", "the process ended"],
      [2, ";", "survived", undefined],
      [3, ";", "killed", "start"],
    ],
  );
});

test("a mutant of a constant is in force while its module is imported", async () => {
  const source = "const AGE = 18;\nexport const isAdult = (age: number): boolean => age >= AGE;\n";
  write("constant.ts", source);
  write(
    "constant.test.ts",
    `import { test } from "node:test"; import { isAdult } from "./constant.ts";
     test("an adult", () => { if (!isAdult(18)) throw new Error("no"); });`,
  );
  const results = await tried("constant.ts", source, "constant.test.ts");
  assert.deepEqual(
    results.map(({ mutant, outcome }) => [mutant.after, outcome]),
    [
      ["19", "killed"],
      [">", "killed"],
    ],
  );
});

test("what one mutant leaves in the state of a module kills no other mutant", async () => {
  const source = `let held = 0;
export const hold = (): void => { held += 1; };
export const release = (): void => { held -= 1; };
export const isIdle = (): boolean => held === 0;
export const isSmall = (size: number): boolean => size < 10;
`;
  write("holds.ts", source);
  write(
    "holds.test.ts",
    `import { test } from "node:test"; import { hold, isIdle, isSmall, release } from "./holds.ts";
     test("holds", () => { hold(); release(); isSmall(3); if (!isIdle()) throw new Error("no"); });`,
  );
  const results = await tried("holds.ts", source, "holds.test.ts");
  const survived = results.filter(({ outcome }) => outcome === "survived").map(({ mutant }) => mutant.after);
  assert.deepEqual(survived, ["<=", "11"]);
});

test("a result that a module keeps hides no mutant", async () => {
  const source = `const known = new Map<number, number>();
export function half(size: number): number {
  const value = known.get(size) ?? size / 2;
  known.set(size, value);
  return value;
}
`;
  write("kept.ts", source);
  write(
    "kept.test.ts",
    `import { test } from "node:test"; import { half } from "./kept.ts";
     test("half", () => { if (half(8) !== 4) throw new Error("no"); });`,
  );
  const results = await tried("kept.ts", source, "kept.test.ts");
  assert.equal(results.find(({ mutant }) => mutant.before === "/")?.outcome, "killed");
});

test("a test that fails without a change is an error", async () => {
  write("adult.ts", ADULT);
  write("broken.test.ts", `import { test } from "node:test"; test("broken", () => { throw new Error("no"); });`);
  await assert.rejects(tried("adult.ts", ADULT, "broken.test.ts"), /fails without any change: broken/);
});
