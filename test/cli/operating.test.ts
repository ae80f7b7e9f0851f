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

/** Two terminals: in one a program runs against a server, the other is ours. */
async function startScenario(t: TestContext) {
  const { store } = await temporaryFolder(t);
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
  /** Reads on until the program says so. */
  const says = async (wanted: string) => {
    for (;;) {
      const { value, done } = await lines.next();
      assert.ok(!done, "the program has ended");
      if (value === wanted) return;
    }
  };
  const operate = async (...argv: string[]) => {
    const answer = await runCli([...argv, "--store", store]);
    assert.equal(answer.exitCode, 0, answer.stderr);
    return answer.stdout;
  };
  return { store, server, says, operate };
}

test("a running program's open circuit is seen from outside, falls by the second, and is closed from there", async t => {
  const { server, says, operate } = await startScenario(t);
  await says("200");
  server.status = 503;
  await says("DOCSTOKG_BREAKER_OPEN");

  const shown = async () => JSON.parse(await operate("breaker", "show", "--open-only", "--json"))[0];
  const first = await shown();
  assert.deepEqual([first.name, first.state, first.reason], ["127.0.0.1", "open", "failures"]);
  assert.ok(first.remainingMs > 0 && first.remainingMs <= 45_000);
  // Its refusals come one by one, and each takes a while.
  await says("DOCSTOKG_BREAKER_OPEN");
  assert.ok((await shown()).remainingMs < first.remainingMs);
  assert.match(await operate("breaker", "show"), /^127\.0\.0\.1 +open +metadata +\S+Z +\d+ s +\d+ +0 +failures$/m);

  server.status = 200;
  assert.match(await operate("breaker", "close", "127.0.0.1"), /^127\.0\.0\.1 is closed\.\n/);
  await says("200");
  assert.deepEqual(JSON.parse(await operate("breaker", "show", "--open-only", "--json")), []);
});

test("an operator cuts a host off in a running program, whose server is well", async t => {
  const { says, operate } = await startScenario(t);
  await says("200");
  await operate("breaker", "open", "127.0.0.1", "--seconds", "300");
  await says("DOCSTOKG_BREAKER_OPEN");
  await operate("breaker", "close", "127.0.0.1");
  await says("200");
});

test("limits show --watch moves with a running program, until Ctrl-C", async t => {
  const { store, says } = await startScenario(t);
  await says("200");
  const acquired: number[] = [];
  let interrupt: () => void = () => assert.fail("nobody listens");
  const io: Io = {
    argv: ["limits", "show", "--watch", "--json", "--store", store],
    env: {},
    stdout: {
      write: line => {
        const [seen] = JSON.parse(line);
        if (seen?.lanes[0] !== undefined) acquired.push(seen.lanes[0].acquired);
        if (new Set(acquired).size === 3) interrupt();
      },
    },
    stderr: { write: text => assert.fail(text) },
    onInterrupt: listener => {
      interrupt = listener;
      return () => undefined;
    },
  };
  // The program must not stop for want of a reader.
  const reading = says("never").catch(() => undefined);
  assert.equal(await runProgram(docstokg, io), 130);
  assert.deepEqual(
    acquired.toSorted((a, b) => a - b),
    acquired,
    "it only rises",
  );
  void reading;
});

async function watching(t: TestContext): Promise<ChildProcess & { readonly stdout: NodeJS.ReadableStream }> {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const bin = join(root, "bin/docstokg.cjs");
  const child = spawn(process.execPath, [bin, "breaker", "show", "--watch", "--store", store], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

test("Ctrl-C ends a watch with 130", async t => {
  const child = await watching(t);
  child.kill("SIGINT");
  assert.deepEqual(await once(child, "exit"), [130, null]);
});

test("a reader that goes away ends a watch, and that is no failure", async t => {
  const child = await watching(t);
  (child.stdout as unknown as { destroy(): void }).destroy();
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("a redis server is a meeting place like a file, and one that stops is told of", {
  skip: whyNoRedis(),
}, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  const opened = await runCli(["breaker", "open", "a.example", "--seconds", "60", "--store", redis.url]);
  assert.match(opened.stdout, /^a\.example is open until /);
  const shown = await runCli(["breaker", "show", "--store", redis.url]);
  assert.match(shown.stdout, /^a\.example +open +all .* cli-open:operator$/m);
  await runCli(["breaker", "close", "a.example", "--store", redis.url]);
  assert.equal((await runCli(["breaker", "show", "--open-only", "--json", "--store", redis.url])).stdout, "[]\n");
  await redis.stop();
  const away = await runCli(["breaker", "show", "--store", redis.url]);
  assert.equal(away.exitCode, 1);
  assert.equal(away.stdout, "");
  assert.match(away.stderr, /^docstokg: redis at 127\.0\.0\.1:\d+: .*\n$/);
});
