import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { docstokg } from "../docstokg.ts";
import { type Io, runProgram } from "../program.ts";

/** Makes hosts known to the commands: an order for a host that nothing knows is an error. */
const KNOWN = { DOCSTOKG_BREAKERS: "a.example=fail_max:5;b.example=fail_max:5;api.example.org=fail_max:5" };
const LISTED = { env: KNOWN };

test("--for takes a duration with a unit of rates, or a number of seconds", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  for (const [text, seconds] of [
    ["300", 300],
    ["90s", 90],
    ["1.5min", 90],
    ["2 hours", 7200],
    ["366day", 31_622_400],
  ] as const) {
    const argv = ["breaker", "open", "a.example", "--for", text, "--replace", "--json", "--store", store];
    const { remainingMs } = JSON.parse((await runCli(argv, LISTED)).stdout);
    assert.equal(Math.ceil(remainingMs / 1000), seconds, text);
  }
});

test("a circuit is opened for 300 seconds, shown and closed again", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const opened = await runCli(["breaker", "open", "API.example.org", "--for", "300s", "--store", store], LISTED);
  assert.equal(opened.exitCode, 0);
  assert.match(
    opened.stdout,
    /^circuit of api\.example\.org: open until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \(300 s\), opened by operator: operator\n/,
  );

  const shown = await runCli(["breaker", "show", "--store", store]);
  assert.equal(shown.exitCode, 0);
  assert.match(shown.stdout, /^host +state +roles +open until \(UTC\) +remaining +failures +trial calls +reason$/m);
  const row =
    /^api\.example\.org +open +all +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +(\d+) s +0 +0 +opened by operator: operator$/m;
  const remainingS = Number(row.exec(shown.stdout)?.[1]);
  assert.ok(remainingS > 0 && remainingS <= 300, shown.stdout);

  const closed = await runCli(["breaker", "close", "api.example.org", "--store", store], LISTED);
  assert.equal(closed.exitCode, 0);
  assert.match(closed.stdout, /^circuit of api\.example\.org: closed\n/);
  const after = await runCli(["breaker", "show", "--store", store]);
  assert.match(after.stdout, /^api\.example\.org +closed +0 +0$/m);
});

test("a service can be opened, and closing one of its hosts closes the service too", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const opened = await runCli(["breaker", "open", "service:ArXiv", "--for", "300s", "--store", store]);
  assert.match(
    opened.stdout,
    /^circuit of service arxiv: open until .*\nNo running process is listed in sqlite:.* applies the order before/,
  );
  const why = await runCli(["why", "https://arxiv.org/abs/1", "--store", store]);
  assert.match(why.stdout, /^Refused: service arxiv is in cooldown \(opened by operator: operator\)/m);
  const closed = await runCli(["breaker", "close", "https://arxiv.org/abs/1", "--store", store]);
  assert.match(closed.stdout, /^circuit of arxiv\.org: closed\n.*\nChanged too: service arxiv\.\n$/);
  const after = await runCli(["why", "https://export.arxiv.org/api", "--store", store]);
  assert.doesNotMatch(after.stdout, /^Refused/m);
});

test("--json prints the same with times in UTC", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const opened = await runCli(["breaker", "open", "a.example", "--for", "300s", "--json", "--store", store], LISTED);
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

test("--open-only leaves out closed circuits", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  for (const host of ["a.example", "b.example"]) {
    await runCli(["breaker", "open", host, "--for", "60s", "--store", store], LISTED);
  }
  await runCli(["breaker", "close", "a.example", "--store", store], LISTED);
  const names = async (...flags: string[]) => {
    const { stdout } = await runCli(["breaker", "show", "--json", ...flags, "--store", store]);
    return JSON.parse(stdout).map(({ name }: { name: string }) => name);
  };
  assert.deepEqual(await names(), ["b.example", "a.example"], "open circuits come first");
  assert.deepEqual(await names("--open-only"), ["b.example"]);
});

test("an unknown target is an error with a suggestion, and nothing is written", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  for (const [target, hint] of [
    ["api.exampel.org", "did you mean api.example.org?"],
    ["api.exampel.org:landing", "did you mean api.example.org:landing?"],
    ["crosref", "did you mean resolver:crossref?"],
    ["service:arxv", "did you mean service:arxiv?"],
    ["service:arxv:landing", "did you mean service:arxiv:landing?"],
    ["resolver:nothing-like-it", "expected a host, <host>:<role> (metadata, landing, artifact)"],
    ["unlisted.example.net", "expected a host"],
    ["host:arxiv", "did you mean service:arxiv?"],
    ["host:landing_page", "did you mean resolver:landing_page?"],
    // As a host, each of these would be an invalid one.
    ["99999999999", "expected a host"],
    ["x".repeat(64), "expected a host"],
  ] as const) {
    for (const argv of [
      ["open", target, "--for", "9s"],
      ["close", target],
      ["half-open", target],
    ]) {
      const { exitCode, stdout, stderr } = await runCli(["breaker", ...argv, "--store", store], LISTED);
      assert.equal(exitCode, 2);
      assert.equal(stdout, "");
      assert.ok(stderr.includes(`unknown target "${target}": no running process has called it`), stderr);
      assert.ok(stderr.includes(hint), stderr);
    }
  }
  const ambiguous = await runCli(["breaker", "close", "arxiv", "--store", store]);
  assert.match(ambiguous.stderr, /"arxiv" is a service and a resolver; write service:arxiv or resolver:arxiv/);
  const partition = await runCli(["breaker", "close", "api.example.org#0123456789abcdef", "--store", store], LISTED);
  assert.equal(partition.exitCode, 2);
  assert.match(partition.stderr, /an order for api\.example\.org applies to all its partitions/);
  assert.equal((await runCli(["breaker", "show", "--json", "--store", store])).stdout, "[]\n");
});

test("one role or one resolver can be opened, and closing a host names a resolver that is still open", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const breaker = async (...argv: string[]) => (await runCli(["breaker", ...argv, "--store", store], LISTED)).stdout;
  assert.match(
    await breaker("open", "a.example:landing", "--for", "60s"),
    /^circuit of a\.example \(landing\): open until .* opened by operator: operator\n/,
  );
  assert.match(await breaker("open", "crossref", "--for", "60s"), /^circuit of resolver crossref: open until /);
  const shown = await breaker("show");
  assert.match(shown, /^a\.example +open +landing +\S+Z +\d+ s +0 +0 +opened by operator: operator$/m);
  assert.match(shown, /^resolver crossref +open +\S+Z +\d+ s +0 +0 +opened by operator: operator$/m);
  assert.match(
    await breaker("close", "a.example"),
    /^circuit of a\.example: closed\n.*\nStill open: resolver crossref\. To close it: docstokg breaker close resolver:crossref\n$/,
  );
  await breaker("half-open", "crossref");
  assert.match(await breaker("close", "a.example"), /\nStill half_open: resolver crossref\. To close it: /);
  assert.match(await breaker("close", "resolver:crossref"), /^circuit of resolver crossref: closed\n/);
  await breaker("open", "a.example", "--for", "60s");
  assert.match(
    await breaker("close", "a.example:landing"),
    /All roles of a\.example are refused for another \d+ s: opened by operator: operator\. To end that: docstokg breaker close a\.example\n$/,
  );
});

test("the cooldown that still refuses a role is printed with its own reason, also if it is one of the service", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const breaker = async (...argv: string[]) => (await runCli(["breaker", ...argv, "--store", store], LISTED)).stdout;
  await breaker("open", "a.example", "--for", "30s", "--reason", "pause");
  await breaker("open", "a.example:artifact", "--for", "1h", "--reason", "artifacts");
  assert.match(
    await breaker("close", "a.example:metadata"),
    /^circuit of a\.example \(metadata\): closed\n.*\nAll roles of a\.example are refused for another \d+ s: opened by operator: pause\./,
  );
  const why = await runCli(["why", "https://a.example/x", "--store", store], LISTED);
  assert.match(why.stdout, /^Refused: a\.example is in cooldown \(opened by operator: pause\)/m);

  await breaker("open", "service:arxiv", "--for", "30s", "--reason", "quota");
  assert.match(
    await breaker("close", "arxiv.org:metadata"),
    /Changed too: service arxiv \(metadata\)\.\nAll roles of service arxiv are refused for another \d+ s: opened by operator: quota\. To end that: docstokg breaker close service:arxiv\n$/,
  );
});

test("an order for one role of a host is for that role of its service, and why prints it", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const breaker = async (...argv: string[]) => (await runCli(["breaker", ...argv, "--store", store], LISTED)).stdout;
  assert.match(await breaker("half-open", "arxiv.org:landing"), /^circuit of arxiv\.org \(landing\): half_open\n/);
  const rows = JSON.parse(await breaker("show", "--json"));
  const states = rows.map(({ name, state, roles }: Record<string, unknown>) => [name, state, roles]);
  assert.deepEqual(states, [
    ["service arxiv", "half_open", ["landing"]],
    ["arxiv.org", "closed", []],
  ]);
  await breaker("open", "arxiv.org:landing", "--for", "60s", "--reason", "pause");
  const why = async (role: string) =>
    (await runCli(["why", "https://arxiv.org/abs/1", "--role", role, "--store", store], LISTED)).stdout;
  assert.match(await why("landing"), /^Refused: circuit open for arxiv\.org \(opened by operator: pause\)/m);
  assert.doesNotMatch(await why("metadata"), /^Refused/m);
});

test("--replace sets a shorter time", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const open = async (...argv: string[]) =>
    JSON.parse((await runCli(["breaker", "open", "a.example", "--json", "--store", store, ...argv], LISTED)).stdout);
  await open("--for", "300s");
  const kept = await open("--for", "10s");
  assert.equal(kept.changed, false);
  assert.ok(kept.remainingMs > 10_000);
  const replaced = await open("--for", "10s", "--replace");
  assert.equal(replaced.changed, true);
  assert.ok(replaced.remainingMs <= 10_000);
});

test("without open circuits and cooldowns show prints that there are none", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const { exitCode, stdout } = await runCli(["breaker", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /\nNo open circuits and no cooldowns\.\n$/);
});

test("a shorter open does not end a longer one, and prints that", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--for", "300s", "--reason", "pause", "--store", store], LISTED);
  const { stdout } = await runCli(["breaker", "open", "a.example", "--for", "10s", "--store", store], LISTED);
  assert.match(
    stdout,
    /^Nothing was changed: the circuit is open for longer already\. --replace sets the shorter time\.$/m,
  );
  assert.match(stdout, /opened by operator: pause/);
});

test("a host keeps its port only if the policy lists it with that port, as for requests", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const open = async (target: string, env: Record<string, string> = {}) => {
    const argv = ["breaker", "open", target, "--for", "9s", "--json", "--store", store];
    return JSON.parse((await runCli(argv, { env })).stdout).host;
  };
  const listed = { DOCSTOKG_BREAKERS: "a.example:8443=fail_max:3" };
  assert.equal(await open("a.example:8443", KNOWN), "a.example");
  assert.equal(await open("a.example:8443", listed), "a.example:8443");
  assert.equal(await open("https://a.example:8443/path", listed), "a.example:8443");
  assert.equal(await open("https://A.example/path?key=x", KNOWN), "a.example");
});

test("without a shared store every command fails with a hint, and prints no result", async () => {
  for (const argv of [
    ["breaker", "show"],
    ["breaker", "open", "a.example", "--for", "9s"],
    ["breaker", "close", "a.example"],
    ["limits", "show"],
  ]) {
    const { exitCode, stdout, stderr } = await runCli(argv);
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /^docstokg: store: no shared store: each process keeps .* in its own memory/);
    assert.match(stderr, /DOCSTOKG_RLIMIT_BACKEND=multiprocess.* --store/);
  }
});

test("an order without a store and with wrong flags names the store first, then every flag", async () => {
  for (const [argv, flags] of [
    [["breaker", "open", "a.example"], [/^--for: required: a duration/]],
    [
      ["breaker", "open", "a.example", "--for", "0", "--reason", ""],
      [/^--for: "0" is not/, /^--reason: expected/],
    ],
    [["limits", "hold", "a.example"], [/^--for: required: a duration/]],
    [
      ["limits", "set", "a.example"],
      [/^\[rate\]: expected rates/, /^--reason: required: one line/],
    ],
    [
      ["limits", "set", "a.example", "x", "--for", "x"],
      [/^\[rate\]: "x"/, /^--for: "x"/, /^--reason: required/],
    ],
  ] as const) {
    const { exitCode, stdout, stderr } = await runCli(argv);
    assert.deepEqual([exitCode, stdout], [2, ""]);
    const [store = "", ...rest] = stderr.trimEnd().split("\n");
    assert.match(store, /^docstokg: store: no shared store: .*DOCSTOKG_RLIMIT_BACKEND=.* --store/);
    assert.equal(rest.length, flags.length, stderr);
    for (const [index, flag] of flags.entries()) assert.match(rest[index] ?? "", flag);
  }
});

test("an order without a target says so before anything else", async () => {
  assert.match((await runCli(["breaker", "open"])).stderr, /^docstokg: missing required argument 'target'/);
});

test("the store is that of the policy and the environment", async () => {
  const { folder, store } = await temporaryFolder();
  await createStoreFile(store);
  const file = join(folder, "shared.db");
  const yaml = join(folder, "ratelimits.yaml");
  await writeFile(yaml, `backend: { kind: sqlite, dsn: ${JSON.stringify(file)} }\n`);
  const environments: readonly Record<string, string>[] = [
    { DOCSTOKG_RLIMITS_YAML: yaml },
    { DOCSTOKG_RLIMIT_BACKEND: "sqlite", DOCSTOKG_RLIMIT_DSN: file },
    { DOCSTOKG_BREAKER_COOLDOWN_BACKEND: "sqlite", DOCSTOKG_BREAKER_COOLDOWN_DSN: file },
  ];
  for (const env of environments) {
    const { exitCode, stdout } = await runCli(["breaker", "show"], { env });
    assert.equal(exitCode, 0);
    assert.ok(stdout.includes(`  sqlite:${file}\n`));
  }
});

test("multiprocess is the file in the user's runtime folder", async () => {
  const { folder } = await temporaryFolder();
  const env = { DOCSTOKG_RLIMIT_BACKEND: "multiprocess", XDG_RUNTIME_DIR: folder };
  const { exitCode, stderr } = await runCli(["breaker", "show"], { env });
  assert.equal(exitCode, 2);
  assert.ok(stderr.includes(`file not found: ${join(folder, "docstokg", "limits.db")}`), stderr);
  await createStoreFile(`sqlite:${join(folder, "docstokg", "limits.db")}`);
  assert.equal((await runCli(["breaker", "show"], { env })).exitCode, 0);
});

test("a watch does not create a deleted file again, and continues when the file is back", async () => {
  const { folder, store } = await temporaryFolder();
  await createStoreFile(store);
  const stderrTexts: string[] = [];
  let interrupt: () => void = () => assert.fail("no listener");
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
  assert.match(stderrTexts[0] ?? "", /^file not found: .*shared\.db/);
});

test("a missing file is not created, and a file that is not a store is not changed", async () => {
  const { folder, store } = await temporaryFolder();
  const missing = await runCli(["breaker", "open", "a.example", "--for", "9s", "--store", store]);
  assert.equal(missing.exitCode, 2);
  assert.match(missing.stderr, /^docstokg: store: file not found: .*shared\.db \(no process has used it yet\)\n$/);
  assert.deepEqual(await readdir(folder), []);

  const notes = join(folder, "notes.txt");
  await writeFile(notes, "dear diary");
  const wrong = await runCli(["breaker", "show", "--store", `sqlite:${notes}`]);
  assert.equal(wrong.exitCode, 2);
  assert.match(wrong.stderr, /notes\.txt is damaged or not a SQLite database/);
  assert.deepEqual(await readdir(folder), ["notes.txt"]);
  assert.equal(await readFile(notes, "utf8"), "dear diary");

  const other = join(folder, "other.db");
  const db = new DatabaseSync(other);
  db.exec("CREATE TABLE theirs (x)");
  db.close();
  const theirs = await runCli(["breaker", "show", "--store", `sqlite:${other}`]);
  assert.equal(theirs.exitCode, 2);
  assert.match(theirs.stderr, /other\.db is a SQLite database, but not a store of docstokg\n$/);

  await writeFile(notes, "");
  assert.match((await runCli(["breaker", "show", "--store", `sqlite:${notes}`])).stderr, /notes\.txt is empty/);
});

test("a server that cannot be reached is an error of one line, without its password", async () => {
  const { exitCode, stdout, stderr } = await runCli(["breaker", "show", "--store", "redis://me:secret@127.0.0.1:1"]);
  assert.equal(exitCode, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^docstokg: redis at 127\.0\.0\.1:1: .*\n$/);
});

test("an invalid argument is named, with the values that are valid", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const wrong = async (...argv: string[]) => {
    const { exitCode, stdout, stderr } = await runCli(["breaker", ...argv, "--store", store]);
    assert.equal(exitCode, 2, argv.join(" "));
    assert.equal(stdout, "");
    return stderr;
  };
  assert.match(await wrong("open", "a.example"), /^docstokg: --for: required: a duration above 0 and/);
  for (const duration of ["0", "-1", "soon", "Infinity", "1e9", "99999999", "367day", "0min", "5 weeks", "s", ""]) {
    assert.match(
      await wrong("open", "a.example", "--for", duration),
      /^docstokg: --for: .* is not a duration above 0 and at most 366day, such as 90s, 5min, 2h or 1day; a number/,
    );
  }
  assert.match(await wrong("open", "a.example", "--for", "9s", "--reason", "a\nb"), /--reason: expected one line/);
  assert.match(await wrong("close", "not a host"), /<target>: "not a host" is neither a host nor a URL/);
  assert.match(await wrong("close", "ftp://a.example"), /<target>: unsupported URL scheme "ftp:"/);
  const { stderr } = await runCli(["breaker", "show", "--store", "mysql://me:secret@x"]);
  assert.match(stderr, /--store: unknown store "mysql:\/\/…@x"; expected multiprocess/);
});

test("colour is printed only on terminals, and not with NO_COLOR or TERM=dumb", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--for", "60s", "--store", store], LISTED);
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

test("policy flags are refused: they have no effect on the circuits of running processes", async () => {
  for (const argv of [
    ["breaker", "show"],
    ["breaker", "close", "a.example"],
    ["limits", "show"],
  ]) {
    for (const flag of ["--rate", "--rate-backend", "--max-inflight", "--breaker", "--breaker-rolling"]) {
      const { exitCode, stderr } = await runCli([...argv, flag, "x"]);
      assert.equal(exitCode, 2);
      assert.ok(stderr.startsWith(`docstokg: unknown option '${flag}'`), stderr);
    }
  }
});

test("the table of open circuits fits terminals of 80 and 40 columns, with every value", async () => {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const host = "api.example.org";
  await runCli(
    ["breaker", "open", host, "--for", "60s", "--reason", "the provider asked for it", "--store", store],
    LISTED,
  );
  for (const columns of [80, 40]) {
    const terminal = { isTTY: true, columns, env: { NO_COLOR: "1" } };
    const { stdout } = await runCli(["breaker", "show", "--store", store], terminal);
    const table = stdout.split("\n").slice(2);
    for (const line of table) assert.ok(line.length <= columns, line);
    const text = table.map(line => line.trim()).join(" ");
    assert.match(text, /host: api\.example\.org state: open roles: all open until \(UTC\): /);
    assert.match(text, /reason: opened by operator: the provider asked for it/);
  }
});
