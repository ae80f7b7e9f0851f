import assert from "node:assert/strict";
import { type ExecFileException, execFile, spawnSync } from "node:child_process";
import { globSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { suite, test } from "node:test";
import type { StrictServer } from "../src/testing/strict-server.ts";

/** Each example is run as its first comment says, as a process of its own, against a server that counts. */
const root = resolve(import.meta.dirname, "..");
const folder = join(root, "examples");

/** On a machine that is busy with all the other tests, a request may come later than the usual guard makes up for. */
const GUARD = "127.0.0.1:metadata=guard_ms:300";
const cached = "the first time: docstokg; fwd=miss\nthe second time: docstokg; hit\n";
const paced = new RegExp(`^12 calls in ([\\d.]+) s, answered with 200\n${cached}$`);

interface Expected {
  /** Its first group is how long the calls took. */
  readonly prints: RegExp;
  /** What the server sees. */
  readonly requests: number;
  /** What it cannot say itself. */
  readonly policy?: string;
}

const expected: Readonly<Record<string, Expected>> = {
  axios: { prints: paced, requests: 13 },
  fetch: {
    prints: new RegExp(
      `^not sent: rate limit .* of 127\\.0\\.0\\.1 \\(metadata\\) reached: next slot in .*, but this call waits at most 0 ms \\(maxWaitMs\\)\n15 calls in ([\\d.]+) s, answered with 200\n${cached}$`,
    ),
    requests: 16,
  },
  install: { prints: paced, requests: 13 },
  ky: { prints: paced, requests: 13 },
  register: { prints: paced, requests: 13, policy: "127.0.0.1:metadata=rates:5/SECOND" },
  sdk: { prints: /^metadata: 200\n(?:artifact: 200\n){5}5 artifacts in ([\d.]+) s\n$/, requests: 6 },
};

installClients();
// It imports the package, as the examples do, and that is linked by now; before, it cannot even be type-checked.
const { startServer } = (await import(join(folder, "server.ts"))) as {
  readonly startServer: () => Promise<StrictServer>;
};

test("every example is run, and the README names it", () => {
  const names = globSync("*.ts", { cwd: folder }).map(file => file.replace(/\.ts$/, ""));
  assert.deepEqual(names.filter(name => name !== "server").sort(), Object.keys(expected));
  const readme = readFileSync(join(folder, "README.md"), "utf8");
  for (const name of names) assert.ok(readme.includes(`[${name}.ts](${name}.ts)`), name);
});

test("the examples type-check", () => {
  const { stdout, status } = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", folder], { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});

suite("against a server that takes five requests in any second", { concurrency: true }, () => {
  for (const [name, { prints, requests, policy }] of Object.entries(expected)) {
    test(`${name}.ts does what it says, and nothing is rejected`, async t => {
      const server = await startServer();
      t.after(() => server.close());
      const rlimits = policy === undefined ? GUARD : `${policy};${GUARD}`;
      const { code, stdout, stderr } = await run([...argumentsOf(name), server.origin], { DOCSTOKG_RLIMITS: rlimits });
      assert.equal(stderr, "");
      assert.equal(code, 0);
      assert.match(stdout, prints);
      const seconds = Number(prints.exec(stdout)?.[1]);
      assert.ok(seconds >= 2, `it took ${seconds} s, which is too fast`);
      assert.equal(server.rejected, 0);
      assert.equal(server.arrivalsMs.length, requests);
      assert.ok(server.busiest <= 5, `${server.busiest} came in one second`);
    });
  }
});

/** What its first comment puts behind `node`, without the origin. */
function argumentsOf(name: string): readonly string[] {
  const text = readFileSync(join(folder, `${name}.ts`), "utf8");
  const command = /^\/\*\*\n(?: \*.*\n)*? \* +node (.*) \[origin\]\n(?: \*.*\n)*? \*\/\n/.exec(text)?.[1];
  assert.ok(command !== undefined, `the first comment of ${name}.ts does not say how to run it`);
  return command.split(" ");
}

/** With none of the variables of whoever runs the tests. */
function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  return new Promise<{
    readonly code: ExecFileException["code"] | 0;
    readonly stdout: string;
    readonly stderr: string;
  }>(done => {
    execFile(process.execPath, args, { cwd: root, env, timeout: 30_000 }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}

/** npm writes this file last: where it is older than the lockfile, or missing, the clients are not all there. */
function installClients(): void {
  const installed = statSync(join(folder, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(join(folder, "package-lock.json")).mtimeMs) return;
  const { status, stderr } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, encoding: "utf8" });
  assert.equal(status, 0, `npm ci in examples/ failed: ${stderr}`);
}
