import assert from "node:assert/strict";
import { test } from "node:test";
import { ontofetch } from "../ontofetch.ts";
import { runProgram } from "../program.ts";

test("the demo plans, pulls, pulls again, and resumes after lost connections, and never opens stdin", async () => {
  let stdout = "";
  const write = (text: string) => (stdout += text);
  const exitCode = await runProgram(ontofetch, {
    ...{ argv: ["demo"], env: {}, stdout: { write }, stderr: { write } },
    get stdin(): undefined {
      return assert.fail("stdin was opened");
    },
  });
  assert.match(stdout, /alder: connection lost after [\d.]+ kB of [\d.]+ kB; resuming/);
  assert.match(stdout, /\n0 files were sent\n/);
  assert.match(stdout, /titan: fetched, .*, resumed after [\d.]+ MB/);
  assert.match(stdout, /content changed: sha256/);
  assert.match(stdout, / requests, 0 of them rejected/);
  assert.equal(exitCode, 0);
});

test("an interrupted demo exits with 130, and says that its servers and its folder are gone", async () => {
  let stderr = "";
  const io = {
    argv: ["demo"],
    env: {},
    stdout: { write: () => undefined },
    stderr: { write: (text: string) => (stderr += text) },
    onInterrupt: (listener: () => void) => {
      listener();
      return () => undefined;
    },
  };
  assert.equal(await runProgram(ontofetch, io), 130);
  assert.match(
    stderr,
    /Interrupted before the end of the demo\. Its servers are closed and its output folder is deleted/,
  );
});
