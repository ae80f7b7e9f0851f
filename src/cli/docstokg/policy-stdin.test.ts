import assert from "node:assert/strict";
import { test } from "node:test";
import { runCli } from "../../../test/cli/kit.ts";

test("policy check - checks the file on stdin, and its problems name the file stdin", async () => {
  const input = "hosts:\n  api.example.org:\n    metadata: { rates: 10/SECNOD }\n";
  const { exitCode, stdout, stderr } = await runCli(["policy", "check", "-"], { input });
  assert.equal(exitCode, 2);
  assert.match(stdout, /^stdin: ratelimits, 1 problem$/m);
  assert.match(stderr, /^stdin:3: hosts\.api\.example\.org\.metadata\.rates: "10\/SECNOD" is not a rate/m);
});

test("policy check - recognises breakers, and accepts a valid file", async () => {
  const { exitCode, stdout } = await runCli(["policy", "check", "-"], { input: "defaults: { fail_max: 3 }\n" });
  assert.equal(exitCode, 0);
  assert.match(stdout, /^stdin: breakers, ok$/m);
});

test("policy check - without an input checks an empty file, and stdin is read once", async () => {
  assert.equal((await runCli(["policy", "check", "-"])).exitCode, 0);
  const twice = await runCli(["policy", "check", "-", "-"], { input: "" });
  assert.equal(twice.exitCode, 2);
  assert.match(twice.stderr, /stdin is given twice, and can be checked only once/);
});

test("policy check - refuses a stream that is too long for a policy", async () => {
  const { exitCode, stderr } = await runCli(["policy", "check", "-"], { input: "#".repeat(10_000_001) });
  assert.equal(exitCode, 2);
  assert.match(stderr, /more than 10000000 bytes/);
});

test("policy check --json - names each file with its kind, as the text does", async () => {
  const { stdout } = await runCli(["policy", "check", "-", "--json"], { input: "defaults: { fail_max: 3 }\n" });
  assert.deepEqual(JSON.parse(stdout).files, [{ file: "stdin", kind: "breakers" }]);
});
