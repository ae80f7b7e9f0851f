import assert from "node:assert/strict";
import { test } from "node:test";
import { ontofetch } from "../ontofetch.ts";
import { runProgram } from "../program.ts";

test("the demo plans, pulls, pulls again, and resumes after lost connections", async () => {
  let stdout = "";
  const write = (text: string) => (stdout += text);
  const exitCode = await runProgram(ontofetch, { argv: ["demo"], env: {}, stdout: { write }, stderr: { write } });
  assert.match(stdout, /alder: connection lost after [\d.]+ kB of [\d.]+ kB; resuming/);
  assert.match(stdout, /\n0 files were sent\n/);
  assert.match(stdout, /titan: fetched, .*, resumed after [\d.]+ MB/);
  assert.match(stdout, /content changed: sha256/);
  assert.match(stdout, / requests, 0 of them rejected/);
  assert.equal(exitCode, 0);
});
