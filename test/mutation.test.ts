import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Baselines } from "../mutation/baseline.ts";
import { problemsOf } from "../mutation/justified.ts";
import { applied, mutantsOf, strippedOf } from "../mutation/mutants.ts";
import { sampleOf } from "../mutation/sample.ts";
import { tryMutants } from "../mutation/try-mutants.ts";

const root = mkdtempSync(join(tmpdir(), "mutation-"));
after(() => rmSync(root, { recursive: true }));

const ADULT = "export const isAdult = (age: number): boolean => age >= 18;\n";
const COUNT =
  "export function countTo(end: number): number {\n  let n = 0;\n  while (n < end) n += 1;\n  return n;\n}\n";

function write(name: string, text: string): void {
  writeFileSync(join(root, name), text);
}

function changes(source: string): readonly string[] {
  const code = strippedOf(source);
  return mutantsOf("toy.ts", source).map(mutant => applied(code, mutant).trim());
}

const tried = (file: string, source: string, testFile: string, slackMs = 20_000) =>
  tryMutants(mutantsOf(file, source), {
    root,
    baselines: new Baselines(root, 20_000),
    stagesOf: () => [[testFile]],
    workers: 2,
    slackMs,
  });

test("a boundary that no test looks at survives, and one that is tested is killed by that test", async () => {
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

test("code that no test runs survives without a trial", async () => {
  const source = "export const used = () => 1;\nexport const unused = () => 2;\n";
  write("half.ts", source);
  write(
    "half.test.ts",
    `import { test } from "node:test"; import { used } from "./half.ts";
     test("used", () => { if (used() !== 1) throw new Error("no"); });`,
  );
  const verdicts = await tried("half.ts", source, "half.test.ts");
  assert.deepEqual(
    verdicts.map(({ mutant, outcome }) => [mutant.line, outcome]),
    [
      [1, "killed"],
      [2, "survived"],
    ],
  );
});

test("a loop that no longer ends is cut off, and counts as noticed", async () => {
  write("count.ts", COUNT);
  write(
    "count.test.ts",
    `import { test } from "node:test"; import { countTo } from "./count.ts";
     test("count", () => { if (countTo(3) !== 3 || countTo(0) !== 0) throw new Error("no"); });`,
  );
  const verdicts = await tried("count.ts", COUNT, "count.test.ts", 0);
  assert.equal(verdicts.find(({ mutant }) => mutant.after === "-=")?.outcome, "time-out");
  assert.equal(
    verdicts.some(({ outcome }) => outcome === "survived"),
    false,
  );
});

test("tests that fail without any change are no judges", async () => {
  write("adult.ts", ADULT);
  write("broken.test.ts", `import { test } from "node:test"; test("broken", () => { throw new Error("no"); });`);
  await assert.rejects(tried("adult.ts", ADULT, "broken.test.ts"), /fails without any change: broken/);
});

test("each kind of change is made, and only where it means something", () => {
  assert.deepEqual(changes("if (a && b) f();"), [
    "if (((a) || (b))) f();",
    "if (false) f();",
    "if (true) f();",
    "if (a && b) ;",
  ]);
  assert.deepEqual(changes("const x = Math.min(a, b) ?? true;"), [
    "const x = ((Math.min(a, b)) && (true));",
    "const x = Math.max(a, b) ?? true;",
    "const x = Math.min(a, b) ?? false;",
  ]);
  assert.deepEqual(changes("const x = a ? !b : c - 1;"), [
    "const x = false ? !b : c - 1;",
    "const x = true ? !b : c - 1;",
    "const x = a ? (b) : c - 1;",
    "const x = a ? !b : c + 1;",
    "const x = a ? !b : c - 2;",
  ]);
  assert.equal(
    changes(COUNT).some(text => text.includes("while (true)")),
    false,
  );
});

test("a mutant keeps its name when its line moves, and two alike have two names", () => {
  const ids = (source: string) => mutantsOf("toy.ts", source).map(({ id }) => id);
  assert.deepEqual(ids(`// moved\n  ${ADULT}`), ids(ADULT));
  assert.equal(new Set(ids("f(1);\nf(1);\n")).size, 4);
});

test("a justification of a mutant that is gone is an error, and so is one without a reason", () => {
  const [first] = mutantsOf("toy.ts", ADULT);
  const entry = { change: "toy.ts >= -> >", reason: "" };
  const justified = { [first?.id ?? ""]: entry, gone: { ...entry, reason: "equal" } };
  assert.deepEqual(
    new Set(problemsOf(justified, mutantsOf("toy.ts", ADULT))),
    new Set([`${first?.id} has no reason: toy.ts >= -> >`, "gone is no mutant any more: toy.ts >= -> >"]),
  );
});

test("a seed draws the same sample in the old order", () => {
  const items = Array.from({ length: 100 }, (_, index) => index);
  const drawn = sampleOf(items, 10, 7);
  assert.equal(drawn.length, 10);
  assert.deepEqual(drawn, sampleOf(items, 10, 7));
  assert.deepEqual(
    drawn,
    drawn.toSorted((a, b) => a - b),
  );
  assert.notDeepEqual(drawn, sampleOf(items, 10, 8));
});
