import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Handler, hubFor, serve } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import type { KeptRobots } from "../http/robots/kept-robots.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { SqliteManifest } from "./manifest/sqlite/sqlite-manifest.ts";
import { RobotsGuard } from "./robots-guard.ts";

const DAY_MS = 24 * 3_600_000;
const { signal } = new AbortController();

/** Guards of two processes that share a manifest file. */
async function twoGuards(t: TestContext, handler: Handler) {
  const time = new FakeTime();
  const { origin, requests } = await serve(t, handler);
  const path = `${temporaryFolder("robots")}/manifest.sqlite`;
  const hub = await hubFor(t);
  const guardOf = async () => {
    const manifest = await SqliteManifest.open(path, time);
    t.after(() => manifest.close());
    const minSpeed = { bytes: 1, periodMs: 30_000, time };
    return new RobotsGuard({ hub, maxWaitMs: 0, minSpeed, kept: manifest.robots, time });
  };
  return { time, origin, requests, first: await guardOf(), second: await guardOf() };
}

test("robots.txt is requested once a day by all processes that share a manifest", async t => {
  let rule = "Disallow: /private";
  const { time, origin, requests, first, second } = await twoGuards(t, (_, response) => {
    response.end(`User-agent: *\n${rule}\n`);
  });
  assert.equal(await first.disallowReason(`${origin}/page`, signal), undefined);
  await time.advance(DAY_MS / 2);
  const disallowed = await second.disallowReason(`${origin}/private/page`, signal);
  assert.deepEqual(disallowed, { reason: "robots", message: "disallowed by robots.txt", mayRetry: false });
  await time.advance(DAY_MS / 2 - 1);
  for (const guard of [first, second]) await guard.disallowReason(`${origin}/page`, signal);
  assert.equal(requests.length, 1);
  rule = "Disallow: /page";
  await time.advance(1);
  for (const guard of [second, first])
    assert.equal((await guard.disallowReason(`${origin}/page`, signal))?.reason, "robots");
  assert.equal(requests.length, 2);
});

test("a missing robots.txt allows everything, and is not requested again", async t => {
  const { origin, requests, first, second } = await twoGuards(t, (_, response) => {
    response.writeHead(404).end("User-agent: *\nDisallow: /");
  });
  for (const guard of [first, second]) assert.equal(await guard.disallowReason(`${origin}/page`, signal), undefined);
  assert.equal(requests.length, 1);
});

test("a robots.txt that fails disallows everything, and is requested again", async t => {
  const { origin, requests, first } = await twoGuards(t, (_, response, number) => {
    response.writeHead(number === 1 ? 501 : 200).end();
  });
  const failed = await first.disallowReason(`${origin}/page`, signal);
  assert.deepEqual([failed?.reason, failed?.status, failed?.mayRetry], ["robots", 501, true]);
  assert.equal(await first.disallowReason(`${origin}/page`, signal), undefined);
  assert.equal(requests.length, 2);
});

test("no page waits until its robots.txt is kept", async t => {
  const { origin, requests } = await serve(t, (_, response) => response.end("User-agent: *\nDisallow: /private\n"));
  const kept: KeptRobots = {
    find: async () => undefined,
    // The server of the manifest is away.
    save: () => new Promise(() => undefined),
  };
  const time = new FakeTime();
  const minSpeed = { bytes: 1, periodMs: 30_000, time };
  const guard = new RobotsGuard({ hub: await hubFor(t), maxWaitMs: 0, minSpeed, kept, time });
  assert.equal(await guard.disallowReason(`${origin}/page`, signal), undefined);
  assert.equal((await guard.disallowReason(`${origin}/private`, signal))?.reason, "robots");
  assert.equal(requests.length, 1);
});
