import assert from "node:assert/strict";
import { type ExecFileException, execFile, spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { suite, test } from "node:test";
import type { StrictServer } from "../src/testing/strict-server.ts";
import { mostWithin } from "./http/write-stamps.ts";
import { installPackages } from "./install-packages.ts";

/** Each example runs as its first comment says, in its own process, against a server that enforces a limit. */
const root = resolve(import.meta.dirname, "..");
const folder = join(root, "examples");

/** A wide guard, because on a busy machine a request may arrive later than the default guard allows for. */
const GUARD = "127.0.0.1:metadata=guard_ms:300";
const cached = "the first time: docstokg; fwd=miss\nthe second time: docstokg; hit\n";
const paced = new RegExp(`^12 calls in ([\\d.]+) s, answered with 200\n${cached}$`);

interface Expected {
  /** Its first group is the duration of the calls in seconds. */
  readonly prints: RegExp;
  /** Requests that arrive at the server. */
  readonly requests: number;
  /** The policy of an example that sets none itself. */
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

installPackages(folder);
// Imported here, because it imports the package, which is linked only after the installation.
const { startServer } = (await import(join(folder, "server.ts"))) as {
  readonly startServer: () => Promise<StrictServer>;
};

test("every example is tested and listed in the README", () => {
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

suite("against a server that allows five requests in any second", { concurrency: true }, () => {
  for (const [name, { prints, requests, policy }] of Object.entries(expected)) {
    test(`${name}.ts prints its expected output, and writes at most five requests in any second`, async t => {
      const server = await startServer();
      t.after(() => server.close());
      const rlimits = policy === undefined ? GUARD : `${policy};${GUARD}`;
      const stamps = join(mkdtempSync(join(tmpdir(), "docstokg-examples-")), "stamps.json");
      t.after(() => rmSync(dirname(stamps), { recursive: true, force: true }));
      const env = { DOCSTOKG_RLIMITS: rlimits, WRITE_STAMPS_FILE: stamps };
      const args = ["--import", join(import.meta.dirname, "http/report-writes.ts"), ...argumentsOf(name)];
      const { code, stdout, stderr } = await run([...args, server.origin], env);
      assert.equal(stderr, "");
      assert.equal(code, 0);
      assert.match(stdout, prints);
      const seconds = Number(prints.exec(stdout)?.[1]);
      assert.ok(seconds >= 2, `it took ${seconds} s, which is too fast`);
      const writesUs: number[] = JSON.parse(readFileSync(stamps, "utf8"));
      // A request that a starved server rejects by its own clock is sent again.
      assert.equal(writesUs.length - server.rejected, requests);
      const most = mostWithin(writesUs, 1_000_000);
      assert.ok(most <= 5, `${most} were written in one second`);
    });
  }
});

/** The arguments of `node` in the first comment of the example, without the origin. */
function argumentsOf(name: string): readonly string[] {
  const text = readFileSync(join(folder, `${name}.ts`), "utf8");
  const command = /^\/\*\*\n(?: \*.*\n)*? \* +node (.*) \[origin\]\n(?: \*.*\n)*? \*\/\n/.exec(text)?.[1];
  assert.ok(command !== undefined, `the first comment of ${name}.ts does not say how to run it`);
  return command.split(" ");
}

/** Without the environment variables of the test process. */
function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  return new Promise<{
    readonly code: ExecFileException["code"] | 0;
    readonly stdout: string;
    readonly stderr: string;
  }>(done => {
    execFile(process.execPath, args, { cwd: root, env }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : error.code, stdout, stderr });
    });
  });
}
