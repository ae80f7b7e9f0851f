import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { createHub } from "../../http/create-hub.ts";

test("why tells host, group, breaker, cache, and each value with where it came from", async () => {
  const { exitCode, stdout } = await runCli(["why", "https://ARXIV.org/abs/1?key=secret", "--role", "landing"]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^https:\/\/arxiv\.org\/abs\/1\?… \(landing\)\n/);
  assert.match(stdout, /^A new process would send it at once, then one each .* Of running ones nothing is known\.$/m);
  assert.match(stdout, /^host +arxiv\.org, as a member of group arxiv$/m);
  assert.match(stdout, /^breaker +not known$/m);
  assert.match(stdout, /^process +not known: every process keeps its limits and breakers in its own memory/m);
  assert.match(stdout, /^cache +not looked at: say with --cache sqlite:<file> where it is$/m);
  assert.match(
    stdout,
    /^group arxiv total\.rates +\S+ .*ratelimits\.yaml \(shipped\):\d+ +groups\.arxiv\.total\.rates$/m,
  );
  assert.match(stdout, /^breaker\.fail_max +\d+ .*breakers\.yaml \(shipped\):\d+/m);
  assert.doesNotMatch(stdout, /secret/);
});

test("a host that an operator has cut off is refused, and why says by whom and for how long", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  await runCli(["breaker", "open", "a.example", "--seconds", "300", "--reason", "pause", "--store", store]);
  const { stdout } = await runCli(["why", "https://a.example/x", "--json", "--store", store]);
  const { verdict, host, shared, cache } = JSON.parse(stdout);
  assert.equal(verdict.kind, "refuse");
  assert.deepEqual(verdict.constraint, { kind: "breaker", owner: "a.example", limit: "cli-open:pause" });
  assert.equal(host, "a.example");
  assert.equal(shared.report.state, "open");
  assert.equal(cache.kind, "not-looked-at");
  const { stdout: text } = await runCli(["why", "https://a.example/x", "--store", store]);
  assert.match(text, /^breaker +open for another \d+ s \(cli-open:pause\), in sqlite:/m);
  assert.match(text, /^process +none has called there in the last minute$/m);
});

test("what lies in the cache is judged as the hub would: fresh, stale, not there", async t => {
  const { folder } = await temporaryFolder(t);
  const cache = `sqlite:${join(folder, "cache.db")}` as const;
  const { origin } = await serve(t, ({ url }, response) => {
    response.setHeader("cache-control", url === "/fresh" ? "max-age=600" : "max-age=0");
    response.setHeader("etag", '"1"');
    response.end("hello");
  });
  const hub = await createHub({ env: {}, cache });
  for (const path of ["/fresh", "/stale"]) await (await hub.fetch(origin + path)).text();
  await hub.close();
  const asked = async (path: string, ...flags: string[]) => {
    const { stdout } = await runCli(["why", origin + path, "--cache", cache, "--json", ...flags]);
    return JSON.parse(stdout);
  };
  const fresh = await asked("/fresh");
  assert.equal(fresh.verdict.kind, "cached");
  assert.ok(fresh.cache.found[0].freshMs > 0 && fresh.cache.found[0].freshMs <= 600_000);
  const stale = await asked("/stale");
  assert.equal(stale.verdict.kind, "send");
  assert.equal(stale.cache.found[0].verdict, "revalidate");
  assert.deepEqual((await asked("/never")).cache.found, []);
  assert.equal((await asked("/fresh", "--role", "artifact")).cache.because, "files are not cached");
  const { stdout } = await runCli(["why", `${origin}/fresh`, "--cache", cache]);
  assert.match(stdout, /^It is answered from the cache, fresh for \d+ s\.$/m);
  assert.match(stdout, /^cache +200, fresh for \d+ s$/m);
});

test("a cache or a store that is not there is not made", async t => {
  const { folder, store } = await temporaryFolder(t);
  const { exitCode, stderr } = await runCli([
    "why",
    "https://a.example/",
    "--cache",
    `sqlite:${join(folder, "no.db")}`,
  ]);
  assert.equal(exitCode, 2);
  assert.match(stderr, /^docstokg: --cache: there is no file /);
  const { exitCode: told, stdout } = await runCli(["why", "https://a.example/", "--store", store]);
  assert.equal(told, 0);
  assert.match(stdout, /^process +not known: there is no file .*shared\.db: no program has used it yet$/m);
  assert.deepEqual(await readdir(folder), []);
});

test("what was typed wrongly is named", async () => {
  for (const [argv, said] of [
    [["api.example.org"], /^docstokg: <url>: expected a whole URL/],
    [["ftp://x.example/"], /^docstokg: <url>: expected a whole URL/],
    [["https://x.example/", "--role", "page"], /^docstokg: --role: unknown role "page"/],
    [["https://x.example/", "--cache", "memory"], /^docstokg: --cache: expected sqlite:<file>, not "memory"/],
  ] as const) {
    const { exitCode, stdout, stderr } = await runCli(["why", ...argv]);
    assert.equal(exitCode, 2);
    assert.equal(stdout, "");
    assert.match(stderr, said);
  }
});
