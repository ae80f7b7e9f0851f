import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import {
  allRules,
  arrows,
  changelogProblems,
  kebabCase,
  noClockOutsideTime,
  noSleepingToThrottle,
  oneLimiterOneBreaker,
  pureCore,
  type Rule,
  repeatedTypes,
  type SourceFile,
  testsAssert,
} from "./code-rules.ts";
import { sentencesOf } from "./sentences.ts";

const root = resolve(import.meta.dirname, "..");
const files = globSync(["*.{md,json}", "{.ci,bin,src,web,test,scripts,sim,bench,examples,docs,configs}/**/*"], {
  cwd: root,
  exclude: path => /node_modules|package-lock/.test(path),
}).filter(path => statSync(join(root, path)).isFile());
const code: readonly SourceFile[] = files
  .filter(path => /\.(?:ts|cjs)$/.test(path))
  .map(path => ({ path, text: readFileSync(join(root, path), "utf8") }));

test("the rules are applied to the source files", () => {
  assert.ok(code.length > 10);
});

for (const [sentence, rule] of Object.entries(allRules)) {
  test(sentence, () => {
    const problems = code.flatMap(file => rule(file).map(problem => `${file.path}: ${problem}`));
    assert.deepEqual(problems, []);
  });
}

test("each type of src is declared in one file", () => {
  assert.deepEqual(repeatedTypes(code), []);
});

test("a type that two source files declare is reported with both files", () => {
  const declaring = (path: string, text: string) => ({ path, text });
  assert.deepEqual(
    repeatedTypes([
      declaring("src/core/rate.ts", "export interface Row {\n}\ntype Rate = number;"),
      declaring("src/core/limit.ts", 'import type { Rate } from "./rate.ts";\ntype Row = string;\ntype Limit<T> = T;'),
      declaring("src/core/limit.test.ts", "interface Limit {}"),
      declaring("test/kit.ts", "class Rate {}"),
    ]),
    ["Row: src/core/rate.ts, src/core/limit.ts"],
  );
});

test("the changelog has the documented sections", () => {
  assert.deepEqual(changelogProblems(readFileSync(join(root, "CHANGELOG.md"), "utf8")), []);
});

test("no sentence of the README and the guides has more than 30 words", () => {
  const plain = files.filter(path =>
    /^(?:README|docs\/(?:guides\/.*|tutorial|recipes|coming-from|troubleshooting|concepts))\.md$/.test(path),
  );
  assert.ok(plain.includes("README.md") && plain.includes("docs/guides/hub.md") && plain.includes("docs/tutorial.md"));
  const long = plain.flatMap(path =>
    sentencesOf(readFileSync(join(root, path), "utf8"))
      .filter(({ words }) => words > 30)
      .map(({ text, words }) => `${path}: ${words} words: ${text}`),
  );
  assert.deepEqual(long, []);
});

test("no file contains a path of a home folder", () => {
  const personal = /(?:^|[\s"'`(=])\/(?:root|home\/\w+|Users\/\w+)\//m;
  const named = files.filter(
    path => path !== "test/code-rules.test.ts" && personal.test(readFileSync(join(root, path), "utf8")),
  );
  assert.deepEqual(named, []);
});

// Each rule is tested with samples that it must report and samples that it must accept.
const samples: readonly (readonly [Rule, bad: readonly SourceFile[], good: readonly SourceFile[]])[] = [
  [
    arrows,
    [
      { path: "src/core/rate.ts", text: 'import { x } from "../time/time.ts";' },
      { path: "src/core/rate.ts", text: 'import { x } from "../errors.ts";' },
      { path: "src/time/time.ts", text: 'export { x } from "../core/rate.ts";' },
      { path: "src/gate/gate.ts", text: 'const x = await import("../http/hub.ts");' },
      { path: "src/gate/gate.ts", text: 'import { x } from "../index.ts";' },
      { path: "src/limiter/budget.ts", text: 'import { x } from "../breaker/permit.ts";' },
      { path: "src/http/hub.ts", text: 'import { x } from "../telemetry/telemetry.ts";' },
      { path: "src/unknown/noun.ts", text: "" },
    ],
    [
      { path: "src/gate/gate.ts", text: 'import { x } from "../core/rate.ts"; import { y } from "../errors.ts";' },
      { path: "src/core/rate.ts", text: 'import { x } from "./host.ts"; import { y } from "structured-headers";' },
      { path: "src/core/rate.test.ts", text: 'import { x } from "../testing/fake-time.ts";' },
    ],
  ],
  [
    pureCore,
    [
      { path: "src/core/rate.ts", text: 'import fs from "node:fs";' },
      { path: "src/core/rate.ts", text: "export async function f() {}" },
      { path: "src/core/rate.ts", text: "const now = Date.now();" },
      { path: "src/core/rate.ts", text: "const dice = Math.random();" },
    ],
    [
      { path: "src/core/rate.ts", text: "// A Date would be impure.\nconst dated = 1;" },
      { path: "src/time/time.ts", text: "const now = Date.now();" },
      { path: "src/core/rate.test.ts", text: "const now = Date.UTC(2026, 1);" },
    ],
  ],
  [
    kebabCase,
    [
      { path: "src/core/windowLog.ts", text: "" },
      { path: "src/Core/rate.ts", text: "" },
      { path: "src/core/rate_log.ts", text: "" },
    ],
    [
      { path: "src/core/window-log.test.ts", text: "" },
      { path: ".ci/run.ts", text: "" },
    ],
  ],
  [
    testsAssert,
    [{ path: "src/core/rate.test.ts", text: 'test("x", () => {});' }],
    [
      { path: "src/core/rate.test.ts", text: "assert.equal(1, 1);" },
      { path: "src/core/rate.ts", text: "" },
    ],
  ],
  [
    noClockOutsideTime,
    [
      { path: "src/gate/gate.ts", text: "setTimeout(() => {}, 5);" },
      { path: "src/core/rate.ts", text: "const now = performance.now();" },
      { path: "src/testing/fake-time.ts", text: "const now = new Date();" },
    ],
    [
      { path: "src/time/system-time.ts", text: "return Date.now();" },
      { path: "src/gate/gate.ts", text: "time.setTimer(5, fire);" },
    ],
  ],
  [
    oneLimiterOneBreaker,
    [
      { path: "bench/limiter.ts", text: "class TokenBucket {}" },
      { path: "src/http/hub.ts", text: "const b = new SharedTokenBucket();" },
      { path: "src/http/hub.ts", text: "applyRetryAfter(response);" },
      { path: "src/http/hub.ts", text: "export class HostLimiter {}" },
      { path: "src/harvest/run.ts", text: "function makeCircuitBreaker() {}" },
    ],
    [
      { path: "src/gate/rate-limiter.ts", text: "export class RateLimiter {}" },
      { path: "src/core/breaker/circuit.ts", text: "export class Breaker {}" },
    ],
  ],
  [
    noSleepingToThrottle,
    [{ path: "src/http/hub.ts", text: "await time.sleep(50);" }],
    [
      { path: "src/time/sleep.ts", text: "export function sleep() {}" },
      { path: "src/gate/gate.test.ts", text: "await time.sleep(50);" },
    ],
  ],
];

for (const [index, [rule, bad, good]] of samples.entries()) {
  test(`code rule ${index + 1} reports the bad samples and accepts the good ones`, () => {
    for (const file of bad) assert.notDeepEqual(rule(file), [], `${file.path}: ${file.text}`);
    for (const file of good) assert.deepEqual(rule(file), [], `${file.path}: ${file.text}`);
  });
}

test("an invalid changelog is reported", () => {
  assert.deepEqual(
    changelogProblems("# Changelog\n\n## Unreleased\n\n### Added\n\n- x\n\n## 0.1.0 - 2026-11-15\n"),
    [],
  );
  assert.equal(changelogProblems("# Changelog\n\n## 0.1.0 - 2026-11-15\n").length, 1);
  assert.equal(changelogProblems("## Unreleased\n\n### Improvements\n").length, 1);
  assert.equal(changelogProblems("## Unreleased\n\n## next\n").length, 1);
  assert.equal(changelogProblems("## Unreleased\n\n- One. Two. Three. Four.\n").length, 1);
  assert.equal(changelogProblems(`## Unreleased\n\n${"- x\n".repeat(300)}`).length, 1);
});
