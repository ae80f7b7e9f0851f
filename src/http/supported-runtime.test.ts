import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runtimeProblem } from "./supported-runtime.ts";

test("Deno, Bun and a Node below the oldest supported one get a sentence that names them", () => {
  assert.equal(runtimeProblem({ node: "22.18.0" }), "docstokg needs Node 22.19 or newer; this is Node 22.18.0");
  assert.equal(runtimeProblem({ node: "20.20.2" }), "docstokg needs Node 22.19 or newer; this is Node 20.20.2");
  assert.match(runtimeProblem({ node: "24.0.0", deno: "2.5.0" }) ?? "", /^docstokg needs Node: under Deno 2\.5\.0 /);
  assert.match(runtimeProblem({ node: "24.0.0", bun: "1.3.0" }) ?? "", /^docstokg needs Node: under Bun 1\.3\.0 /);
  for (const node of ["22.19.0", "22.20.1", "24.0.0", "26.1.0"]) assert.equal(runtimeProblem({ node }), undefined);
});

test("the oldest Node is the one of package.json", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  assert.match(runtimeProblem({ node: "1.0.0" }) ?? "", new RegExp(`needs Node ${engines.node.replace(">=", "")} or`));
});
