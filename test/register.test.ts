import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { serve } from "./http/kit.ts";
import { collectOutput } from "./process-output.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Runs a program in its own process with --import. */
async function run(code: string, env: Record<string, string>, ...args: readonly string[]) {
  const folder = temporaryFolder("register");
  const file = join(folder, "app.mjs");
  writeFileSync(file, code);
  const register = resolve(import.meta.dirname, "../src/register.ts");
  const child = spawn(process.execPath, ["--import", register, file, ...args], { env: { ...process.env, ...env } });
  return collectOutput(child).ended;
}

test("with --import docstokg/register an unchanged program keeps the limits and still ends by itself", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const { code, stdout, stderr } = await run(
    "const answers = [1, 2, 3, 4, 5, 6].map(async n => (await fetch(process.argv[2] + '/' + n)).text());" +
      "console.log((await Promise.all(answers)).join());",
    { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:2/200ms,guard_ms:0", DOCSTOKG_MAILTO: "you@example.org" },
    server.origin,
  );
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: "ok,ok,ok,ok,ok,ok\n", stderr: "" });
  const [first = 0, , third = 0] = server.arrivalsMs;
  assert.ok(third - first >= 199, `the third came ${third - first} ms after the first`);
  assert.match(server.requests[0]?.headers["user-agent"] ?? "", /^docstokg\/\S+ \(mailto:you@example\.org\)$/);
});

test("with --import docstokg/register and an invalid policy the program ends with code 2 before it runs", async () => {
  const { code, stdout, stderr } = await run("console.log('running')", {
    DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:fast",
  });
  assert.equal(code, 2);
  assert.equal(stdout, "");
  assert.match(stderr, /^docstokg: DOCSTOKG_RLIMITS/);
});

test("with --import docstokg/register and a store that can never work the program ends with code 1 and one line", async () => {
  const file = join(temporaryFolder("register"), "notes.txt");
  writeFileSync(file, "not a store");
  const env = { DOCSTOKG_RLIMIT_BACKEND: "sqlite", DOCSTOKG_RLIMIT_DSN: file };
  assert.deepEqual(await run("console.log('running')", env), {
    code: 1,
    signal: null,
    stdout: "",
    stderr: `docstokg: cannot open ${file}: the file exists and is not a database of docstokg; it was not changed; name another file\n`,
  });
});

test("with --import docstokg/register an invalid DOCSTOKG_CACHE is reported without its password", async () => {
  assert.deepEqual(await run("", { DOCSTOKG_CACHE: "redis://:hunter2@cache.example.org" }), {
    code: 2,
    signal: null,
    stdout: "",
    stderr: 'docstokg: DOCSTOKG_CACHE: "redis://…@cache.example.org" is not one of memory, off, sqlite:<file>\n',
  });
});
