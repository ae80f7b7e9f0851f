import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { docstokg } from "../../src/cli/docstokg.ts";
import { type Io, runProgram } from "../../src/cli/program.ts";
import { serve } from "../http/kit.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";
import { createStoreFile, runCli, temporaryFolder } from "./kit.ts";

const root = resolve(import.meta.dirname, "../..");

/** A program that calls a server in another process, and operator commands in this one. */
async function startScenario(t: TestContext) {
  const { store } = await temporaryFolder();
  const server = { status: 200 };
  const { origin } = await serve(t, (_, response) => response.writeHead(server.status).end());
  const program = spawn(process.execPath, [join(import.meta.dirname, "fetch-process.ts"), store, origin], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
  t.after(async () => {
    program.stdin.end();
    if (program.exitCode === null) await once(program, "exit");
  });
  /** Reads the output of the program up to this line. */
  const waitForLine = async (wanted: string) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, "the program has ended");
      if (value === wanted) return;
    }
  };
  /** Repeats a command that fails because a process without CPU time holds the lock of the file. */
  const operate = async (...argv: string[]) => {
    for (;;) {
      // The host is listed, because the program may not have published yet that it has called it.
      const answer = await runCli([...argv, "--store", store], { env: { DOCSTOKG_BREAKERS: "127.0.0.1=fail_max:5" } });
      if (answer.stderr.includes("locked")) continue;
      assert.equal(answer.stderr, "");
      return answer.stdout;
    }
  };
  return { store, server, waitForLine, operate };
}

test("an open circuit of a running program is shown with its time left, and closed by an operator", async t => {
  const { server, waitForLine, operate } = await startScenario(t);
  await waitForLine("200");
  server.status = 503;
  await waitForLine("DOCSTOKG_BREAKER_OPEN");

  /** The program writes the open circuit later if it could not reach the file. */
  const shown = async () => {
    for (;;) {
      const [row] = JSON.parse(await operate("breaker", "show", "--open-only", "--json"));
      if (row !== undefined) return row;
      await waitForLine("DOCSTOKG_BREAKER_OPEN");
    }
  };
  const first = await shown();
  assert.deepEqual([first.name, first.state, first.reason], ["127.0.0.1", "open", "failures"]);
  assert.ok(first.remainingMs > 0 && first.remainingMs <= 45_000);
  // Time passes until the program reports its next refusal.
  await waitForLine("DOCSTOKG_BREAKER_OPEN");
  assert.ok((await shown()).remainingMs < first.remainingMs);
  assert.match(await operate("breaker", "show"), /^127\.0\.0\.1 +open +metadata +\S+Z +\d+ s +\d+ +0 +failures$/m);

  server.status = 200;
  assert.match(await operate("breaker", "close", "127.0.0.1"), /^circuit of 127\.0\.0\.1: closed\n/);
  await waitForLine("200");
  assert.deepEqual(JSON.parse(await operate("breaker", "show", "--open-only", "--json")), []);
});

test("an operator opens the circuit of a working host in a running program", async t => {
  const { waitForLine, operate } = await startScenario(t);
  await waitForLine("200");
  await operate("breaker", "open", "127.0.0.1", "--for", "300s");
  await waitForLine("DOCSTOKG_BREAKER_OPEN");
  await operate("breaker", "close", "127.0.0.1");
  await waitForLine("200");
});

test("limits show --watch follows a running program, until Ctrl-C", async t => {
  const { store, waitForLine } = await startScenario(t);
  await waitForLine("200");
  const acquired: number[] = [];
  let interrupt: () => void = () => assert.fail("no listener");
  const io: Io = {
    argv: ["limits", "show", "--watch", "--json", "--store", store],
    env: {},
    stdout: {
      write: line => {
        const [row] = JSON.parse(line);
        if (row?.keys[0] !== undefined) acquired.push(row.keys[0].acquired);
        if (new Set(acquired).size === 3) interrupt();
      },
    },
    stderr: { write: text => assert.fail(text) },
    onInterrupt: listener => {
      interrupt = listener;
      return () => undefined;
    },
  };
  // Output that is not read would fill the pipe and stop the program.
  const reading = waitForLine("never").catch(() => undefined);
  assert.equal(await runProgram(docstokg, io), 130);
  assert.deepEqual(
    acquired.toSorted((a, b) => a - b),
    acquired,
    "the count never falls",
  );
  void reading;
});

async function watching(t: TestContext): Promise<ChildProcess & { readonly stdout: NodeJS.ReadableStream }> {
  const { store } = await temporaryFolder();
  await createStoreFile(store);
  const bin = join(root, "bin/docstokg.cjs");
  const child = spawn(process.execPath, [bin, "breaker", "show", "--watch", "--store", store], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const ended = once(child, "exit").then(([code]) => assert.fail(`the command has ended with ${code}; is dist built?`));
  await Promise.race([once(child.stdout, "data"), ended]);
  return child;
}

test("Ctrl-C ends a watch with 130", async t => {
  const child = await watching(t);
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
});

test("a watch whose reader closes the pipe ends with 0", async t => {
  const child = await watching(t);
  (child.stdout as unknown as { destroy(): void }).destroy();
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("a Redis server works as a shared store, and one that stops is an error", {
  skip: whyNoRedis(),
}, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  // On a busy machine the server may need more than the default of a second.
  const store = `${redis.url}?timeoutMs=60000`;
  const listed = { env: { DOCSTOKG_BREAKERS: "a.example=fail_max:5" } };
  const opened = await runCli(["breaker", "open", "a.example", "--for", "60s", "--store", store], listed);
  assert.match(opened.stdout, /^circuit of a\.example: open until /, opened.stderr);
  const shown = await runCli(["breaker", "show", "--store", store]);
  assert.match(shown.stdout, /^a\.example +open +all .* opened by operator: operator$/m);
  await runCli(["breaker", "close", "a.example", "--store", store], listed);
  assert.equal((await runCli(["breaker", "show", "--open-only", "--json", "--store", store])).stdout, "[]\n");
  await redis.stop();
  const away = await runCli(["breaker", "show", "--store", redis.url]);
  assert.equal(away.exitCode, 1);
  assert.equal(away.stdout, "");
  assert.match(away.stderr, /^docstokg: redis at 127\.0\.0\.1:\d+: .*\n$/);
});
