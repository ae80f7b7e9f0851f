/** A server that was restarted or promoted may lack the last changes: its processes report what they know. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import type { LeaseReply, LeaseRequest, UseReport } from "../../src/stores/store.ts";
import { eventually } from "./eventually.ts";
import { ReplicatedServer } from "./redis-replica.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { kindOf, one } from "./requests.ts";

const HOUR_MS = 3_600_000;
const PATIENT_MS = 600_000;
/** Otherwise a busy disk delays the file, and a server that is killed loses all of it. */
const WRITTEN_AT_ONCE = ["--appendonly", "yes", "--appendfsync", "always"];

async function started(t: TestContext, ...args: readonly string[]): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-history-"));
  const server = await RedisServer.start("--dir", folder, ...args);
  t.after(async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return server;
}

async function opened(t: TestContext, url: string): Promise<RedisStore> {
  const store = await RedisStore.open(url, { trustMs: 0, timeoutMs: PATIENT_MS });
  t.after(() => store.close());
  return store;
}

/** A request of a process that has had a reply about the budget a moment ago. */
function known(request: LeaseRequest): LeaseRequest {
  return { ...request, claims: request.claims.map(claim => ({ ...claim, knownAgoUs: 1000 })) };
}

function knownUnits(request: LeaseRequest, units: number, lastReplied = units): readonly UseReport[] {
  return known(request).claims.map(claim => ({
    ...{ claim, keys: [claim.key], sent: 0, sentAgoUs: 0 },
    ...{ known: [units], lastReplied: [lastReplied] },
  }));
}

/** The reply of the server, after the lost connection was made again. */
async function replyOf(store: RedisStore, request: LeaseRequest): Promise<LeaseReply | undefined> {
  return eventually(async () => (await store.exchange([], [request]))[0]);
}

function isLost(reply: LeaseReply | undefined): boolean {
  return reply?.kind === "wait" && reply.isLost === true;
}

describe("a Redis server with older data", { skip: whyNoRedis() }, () => {
  test("a promoted replica that lacks the last units grants none until they are reported", async t => {
    const servers = await ReplicatedServer.start();
    t.after(() => servers[Symbol.asyncDispose]());
    const store = await opened(t, servers.url);
    const request = one("k", 3, HOUR_MS);
    assert.equal(await kindOf(store, request), "granted");
    await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
    await servers.hasCaughtUp();
    servers.detach();
    assert.equal(await kindOf(store, known({ ...request, least: 2, most: 2 })), "granted");
    await store.exchange([{ keys: ["k"], written: 2, returned: 0 }], []);

    servers.promote();
    assert.ok(isLost(await replyOf(store, known(request))), "the replica has only one of the three units");
    await store.exchange([], [], knownUnits(request, 3));
    const reply = await replyOf(store, known(request));
    assert.ok(reply?.kind === "wait" && !reply.isLost, JSON.stringify(reply));
    assert.equal(
      await kindOf(await opened(t, servers.replica.url), request),
      "wait",
      "the other processes know it too",
    );
  });

  test("a server that was restarted with its file may have lost the last units", async t => {
    const server = await started(t, ...WRITTEN_AT_ONCE);
    const store = await opened(t, server.url);
    const request = one("k", 3, HOUR_MS);
    assert.equal(await kindOf(store, request), "granted");
    await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
    await server.stop();
    await server.start();
    assert.ok(isLost(await replyOf(store, known(request))));
    // Reports and requests of one call: the reports count first. The server still has the unit that was written.
    const [reply] = await store.exchange([], [known({ ...request, wantsUse: true })], knownUnits(request, 3, 2));
    assert.deepEqual(reply, { kind: "granted", units: 1, isStricter: false, use: [[3]] });
  });

  test("a process that knows of no unit in use may lease from a restarted server at once", async t => {
    const server = await started(t, ...WRITTEN_AT_ONCE);
    const store = await opened(t, server.url);
    assert.equal(await kindOf(store, one("k", 3, HOUR_MS)), "granted");
    await server.stop();
    await server.start();
    assert.equal((await replyOf(store, one("k", 3, HOUR_MS)))?.kind, "granted");
  });

  test("a connection that was only closed loses nothing", async t => {
    const server = await started(t);
    const store = await opened(t, server.url);
    assert.equal(await kindOf(store, one("k", 3, HOUR_MS)), "granted");
    server.cli("client", "kill", "type", "normal");
    assert.equal((await replyOf(store, known(one("k", 3, HOUR_MS))))?.kind, "granted");
  });

  test("a user without the right to INFO can use the store", async t => {
    const server = await started(t);
    server.cli("acl", "setuser", "plain", "on", "nopass", "~*", "&*", "+@all", "-info");
    const store = await opened(t, server.url.replace("://", "://plain:any@"));
    assert.equal(await kindOf(store, known(one("k", 3, HOUR_MS))), "wait");
    assert.equal(await kindOf(store, one("k", 3, HOUR_MS)), "granted");
  });
});
