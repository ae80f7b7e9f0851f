import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { docstokg } from "../docstokg.ts";
import { type Io, runProgram } from "../program.ts";

test("open for 300 seconds, show, close: each tells what is so", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const opened = await runCli(["breaker", "open", "API.example.org", "--seconds", "300", "--store", store]);
  assert.equal(opened.exitCode, 0);
  assert.match(
    opened.stdout,
    /^api\.example\.org is open until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(300 s\), cli-open:operator\.\n/,
  );

  const shown = await runCli(["breaker", "show", "--store", store]);
  assert.equal(shown.exitCode, 0);
  assert.match(shown.stdout, /^host +state +roles +open until \(UTC\) +remaining +window +probes +reason$/m);
  const row = /^api\.example\.org +open +all +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +(\d+) s +0 +0 +cli-open:operator$/m;
  const remainingS = Number(row.exec(shown.stdout)?.[1]);
  assert.ok(remainingS > 0 && remainingS <= 300, shown.stdout);

  const closed = await runCli(["breaker", "close", "api.example.org", "--store", store]);
  assert.equal(closed.exitCode, 0);
  assert.match(closed.stdout, /^api\.example\.org is closed\.\n/);
  const after = await runCli(["breaker", "show", "--store", store]);
  assert.match(after.stdout, /^api\.example\.org +closed +0 +0$/m);
});

test("programs get the same as JSON, with times in UTC", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const opened = await runCli(["breaker", "open", "a.example", "--seconds", "300", "--json", "--store", store]);
  const { openUntil, ...rest } = JSON.parse(opened.stdout);
  assert.equal(rest.host, "a.example");
  assert.equal(rest.state, "open");
  assert.ok(rest.remainingMs > 0 && rest.remainingMs <= 300_000);
  assert.match(openUntil, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const [row] = JSON.parse((await runCli(["breaker", "show", "--json", "--store", store])).stdout);
  assert.equal(row.name, "a.example");
  assert.ok(row.remainingMs > 0 && row.remainingMs <= 300_000);
  assert.deepEqual([row.state, row.reason, row.windowFailures, row.probes], ["open", "cli-open:operator", 0, 0]);
});

test("--open-only leaves out what is closed", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  for (const host of ["a.example", "b.example"]) {
    await runCli(["breaker", "open", host, "--seconds", "60", "--store", store]);
  }
  await runCli(["breaker", "close", "a.example", "--store", store]);
  const names = async (...flags: string[]) => {
    const { stdout } = await runCli(["breaker", "show", "--json", ...flags, "--store", store]);
    return JSON.parse(stdout).map(({ name }: { name: string }) => name);
  };
  assert.deepEqual(await names(), ["b.example", "a.example"], "the worst first");
  assert.deepEqual(await names("--open-only"), ["b.example"]);
});

test("with nothing to show it says so", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const { exitCode, stdout } = await runCli(["breaker", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /\nNothing is held against any host\.\n$/);
});

test("a shorter order does not end a longer one, and says so", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--seconds", "300", "--reason", "pause", "--store", store]);
  const { stdout } = await runCli(["breaker", "open", "a.example", "--seconds", "10", "--store", store]);
  assert.match(stdout, /^It was cut off for longer than that already, and the later end counts\.\n/);
  assert.match(stdout, /cli-open:pause/);
});

test("a port counts only where the policy names it, as for requests", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const open = async (target: string, ...flags: string[]) => {
    const { stdout } = await runCli([
      "breaker",
      "open",
      target,
      "--seconds",
      "9",
      "--json",
      "--store",
      store,
      ...flags,
    ]);
    return JSON.parse(stdout).host;
  };
  const named = ["--breaker", "a.example:8443=fail_max:3"];
  assert.equal(await open("a.example:8443"), "a.example");
  assert.equal(await open("a.example:8443", ...named), "a.example:8443");
  assert.equal(await open("https://a.example:8443/path", ...named), "a.example:8443");
  assert.equal(await open("https://A.example/path?key=x"), "a.example");
});

test("without a shared store every command fails with a hint, and pretends nothing", async () => {
  for (const argv of [
    ["breaker", "show"],
    ["breaker", "open", "a.example", "--seconds", "9"],
    ["breaker", "close", "a.example"],
    ["limits", "show"],
  ]) {
    const { exitCode, stdout, stderr } = await runCli(argv);
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /^docstokg: store: every process keeps .* in its own memory/);
    assert.match(stderr, /DOCSTOKG_RLIMIT_BACKEND=multiprocess.* --store/);
  }
});

test("the store is where the policy says, in its layers", async t => {
  const { folder, store } = await temporaryFolder(t);
  await createStoreFile(store);
  const file = join(folder, "shared.db");
  const places: readonly (readonly [string[], Record<string, string>])[] = [
    [["--rate-backend", "sqlite", "--rate-dsn", file], {}],
    [[], { DOCSTOKG_RLIMIT_BACKEND: "sqlite", DOCSTOKG_RLIMIT_DSN: file }],
    [[], { DOCSTOKG_BREAKER_COOLDOWN_BACKEND: "sqlite", DOCSTOKG_BREAKER_COOLDOWN_DSN: file }],
  ];
  for (const [flags, env] of places) {
    const { exitCode, stdout } = await runCli(["breaker", "show", ...flags], { env });
    assert.equal(exitCode, 0);
    assert.ok(stdout.includes(`  sqlite:${file}\n`));
  }
});

test("multiprocess is the file in the user's runtime folder", async t => {
  const { folder } = await temporaryFolder(t);
  const env = { DOCSTOKG_RLIMIT_BACKEND: "multiprocess", XDG_RUNTIME_DIR: folder };
  const { exitCode, stderr } = await runCli(["breaker", "show"], { env });
  assert.equal(exitCode, 2);
  assert.ok(stderr.includes(`there is no file ${join(folder, "docstokg", "limits.db")}`), stderr);
  await createStoreFile(`sqlite:${join(folder, "docstokg", "limits.db")}`);
  assert.equal((await runCli(["breaker", "show"], { env })).exitCode, 0);
});

test("a watch does not make the file anew that somebody has deleted, and goes on when it is back", async t => {
  const { folder, store } = await temporaryFolder(t);
  await createStoreFile(store);
  const stderrTexts: string[] = [];
  let interrupt: () => void = () => assert.fail("nobody listens");
  const io: Io = {
    argv: ["breaker", "show", "--watch", "--json", "--store", store],
    env: {},
    stdout: {
      write: text => {
        assert.equal(text, "[]\n");
        if (stderrTexts.length > 0) interrupt();
        else for (const name of readdirSync(folder)) rmSync(join(folder, name));
      },
    },
    stderr: {
      write: text => {
        stderrTexts.push(text);
        if (stderrTexts.length > 1) return;
        assert.deepEqual(readdirSync(folder), []);
        void createStoreFile(store);
      },
    },
    onInterrupt: listener => {
      interrupt = listener;
      return () => undefined;
    },
  };
  assert.equal(await runProgram(docstokg, io), 130);
  assert.match(stderrTexts[0] ?? "", /^there is no file .*shared\.db/);
});

test("a file that is not there is not made, and one that is no store is left as it is", async t => {
  const { folder, store } = await temporaryFolder(t);
  const missing = await runCli(["breaker", "open", "a.example", "--seconds", "9", "--store", store]);
  assert.equal(missing.exitCode, 2);
  assert.match(missing.stderr, /^docstokg: store: there is no file .*shared\.db: no program has used it yet\n$/);
  assert.deepEqual(await readdir(folder), []);

  const notes = join(folder, "notes.txt");
  await writeFile(notes, "dear diary");
  const wrong = await runCli(["breaker", "show", "--store", `sqlite:${notes}`]);
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /notes\.txt is damaged, or no SQLite file/);
  assert.deepEqual(await readdir(folder), ["notes.txt"]);
  assert.equal(await readFile(notes, "utf8"), "dear diary");

  await writeFile(notes, "");
  assert.match((await runCli(["breaker", "show", "--store", `sqlite:${notes}`])).stderr, /notes\.txt is empty/);
});

test("a server that is away is a failure of one line, without what is secret in its address", async () => {
  const { exitCode, stdout, stderr } = await runCli(["breaker", "show", "--store", "redis://me:secret@127.0.0.1:1"]);
  assert.equal(exitCode, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^docstokg: redis at 127\.0\.0\.1:1: .*\n$/);
});

test("what was typed wrongly is named, with what would be right", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const wrong = async (...argv: string[]) => {
    const { exitCode, stdout, stderr } = await runCli(["breaker", ...argv, "--store", store]);
    assert.equal(exitCode, 2, argv.join(" "));
    assert.equal(stdout, "");
    return stderr;
  };
  assert.match(await wrong("open", "a.example"), /required option '--seconds <number>'/);
  for (const seconds of ["0", "-1", "soon", "Infinity", "1e9", "99999999"]) {
    assert.match(
      await wrong("open", "a.example", "--seconds", seconds),
      /^docstokg: --seconds: .* expected a number above 0/,
    );
  }
  assert.match(await wrong("open", "a.example", "--seconds", "9", "--reason", "a\nb"), /--reason: expected one line/);
  assert.match(await wrong("close", "not a host"), /<host\|url>: "not a host" is not a host/);
  assert.match(await wrong("close", "ftp://a.example"), /<host\|url>: unsupported URL scheme "ftp:"/);
  const { stderr } = await runCli(["breaker", "show", "--store", "mysql://me:secret@x"]);
  assert.match(stderr, /--store: "mysql:\/\/…@x" is no store; expected multiprocess/);
});

test("colour is for terminals that want it", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--seconds", "60", "--store", store]);
  const shown = async (isTTY: boolean, env: Record<string, string>) =>
    (await runCli(["breaker", "show", "--store", store], { isTTY, env })).stdout;
  assert.ok((await shown(true, {})).includes("\x1b[31mopen\x1b[39m"));
  for (const [isTTY, env] of [
    [false, {}],
    [true, { NO_COLOR: "1" }],
    [true, { TERM: "dumb" }],
  ] as const) {
    assert.ok(!(await shown(isTTY, env)).includes("\x1b"));
  }
});
