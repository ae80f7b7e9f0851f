import assert from "node:assert/strict";
import { test } from "node:test";
import { ontofetch } from "../ontofetch.ts";
import { runProgram } from "../program.ts";

test("the demo plans, pulls, pulls again, and survives what breaks off", async () => {
  let stdout = "";
  const write = (text: string) => (stdout += text);
  const exitCode = await runProgram(ontofetch, { argv: ["demo"], env: {}, stdout: { write }, stderr: { write } });
  assert.match(stdout, /alder: broke off after [\d.]+ kB of [\d.]+ kB; asking for the rest/);
  assert.match(stdout, /\n0 files were sent\n/);
  assert.match(stdout, /titan: fetched, .*, the last [\d.]+ MB of it after a break/);
  assert.match(stdout, /its bytes have changed/);
  assert.match(stdout, / requests, 0 of them rejected/);
  assert.equal(exitCode, 0);
});
