import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { ClientResult } from "./send-all.ts";

const root = resolve(import.meta.dirname, "../..");
const isInstalled = existsSync(join(import.meta.dirname, "node_modules/.package-lock.json"));
const skip = !isInstalled && "the clients are not installed: npm run clients installs and tests them";

/** isomorphic-git takes no agent and no fetch. */
const ONLY_INSTALLED = ["isomorphic-git"];
const REQUESTS = 12;

/** Servers in another process, one for each client, that allow five requests in any second. */
async function startServers(t: TestContext, count: number) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "servers.ts"), String(count)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value ?? "null");
  const origins: readonly string[] = await next();
  const counts = async (): Promise<readonly { readonly received: number; readonly rejected: number }[]> => {
    child.stdin.end();
    return next();
  };
  return { origins, counts };
}

async function sendAll(t: TestContext, way: string, requests: number) {
  const { clients } = await import(pathToFileURL(join(import.meta.dirname, "clients.mjs")).href);
  const { origins, counts } = await startServers(t, Object.keys(clients).length);
  const isRegistered = way === "register";
  const limits = origins.map(origin => `${new URL(origin).host}:metadata=rates:5/SECOND,guard_ms:300`);
  const args = isRegistered ? ["--import", pathToFileURL(join(root, "src/register.ts")).href] : [];
  const file = join(import.meta.dirname, "send-all.ts");
  const env = isRegistered ? { DOCSTOKG_RLIMITS: limits.join(";"), DOCSTOKG_CACHE: "off" } : {};
  const results = await new Promise<readonly ClientResult[]>((done, failed) => {
    const all = [...args, file, way, String(requests), JSON.stringify(origins)];
    execFile(process.execPath, all, { env: { PATH: process.env["PATH"] ?? "", ...env } }, (error, stdout, stderr) => {
      if (error !== null) failed(new Error(`${error.message}\n${stderr}`));
      else done(JSON.parse(stdout));
    });
  });
  return { results, counts: await counts() };
}

for (const [way, sentence] of Object.entries({
  install: "hub.install: every request of every client passes the hub, and none is sent twice",
  register: "docstokg/register: every request of every client passes the hub, and none is sent twice",
  explicit: "hub.fetch, hub.agents and hub.dispatcher: every request of every client passes the hub",
})) {
  test(sentence, { skip }, async t => {
    const { results, counts } = await sendAll(t, way, REQUESTS);
    assert.ok(results.length > 20);
    for (const [index, { name, succeeded, errors, seen }] of results.entries()) {
      if (way === "explicit" && ONLY_INSTALLED.includes(name)) continue;
      const { received = 0, rejected = 0 } = counts[index] ?? {};
      const summary = `${name}: ${JSON.stringify({ received, rejected, succeeded, seen, errors: errors.slice(0, 1) })}`;
      // A starved server rejects by its own clock; then a client fails, or the hub sends the request again.
      assert.equal(seen, REQUESTS, summary);
      assert.ok(errors.length <= rejected && received >= REQUESTS, summary);
    }
  });
}

test("a refusal reaches the caller of every client with its host and the time of the next slot", { skip }, async t => {
  const { results, counts } = await sendAll(t, "refuse", 7);
  for (const [index, { name, errors }] of results.entries()) {
    assert.ok(errors.length >= 2, `${name} was not refused: ${JSON.stringify(counts[index])}`);
    assert.match(errors[0] ?? "", /rate limit .* of 127\.0\.0\.1:\d+ .*next slot in/, name);
  }
});
