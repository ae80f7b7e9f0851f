import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@redis/client";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";

interface Reply {
  readonly status?: number;
  readonly code?: string;
  readonly remainingMs?: number;
}

/** What the servers answer, and how often they were asked. */
class Site {
  answer: { status: number; headers?: Record<string, string>; delayMs?: number } = { status: 200 };
  asked = 0;
  origin = "";

  async start(t: TestContext): Promise<this> {
    const server = createServer(async (_, response) => {
      this.asked += 1;
      const { status, headers = {}, delayMs = 0 } = this.answer;
      if (delayMs > 0) await delay(delayMs);
      response.writeHead(status, headers).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return this;
  }
}

async function processes(t: TestContext, store: string, count: number): Promise<readonly ChildProcess[]> {
  const file = resolve(import.meta.dirname, "cut-off-process.ts");
  const children = Array.from({ length: count }, () => fork(file, [store]));
  t.after(() => {
    for (const child of children) child.kill("SIGKILL");
  });
  await Promise.all(children.map(child => once(child, "message")));
  return children;
}

async function ask(child: ChildProcess | undefined, url: string): Promise<Reply> {
  assert.ok(child !== undefined);
  const reply = once(child, "message");
  child.send(url);
  return (await reply)[0];
}

/** Looks into a store as other tools do. */
interface Spyhole {
  readonly url: string;
  /** What is known of a host that is to be left alone; undefined when there is nothing. */
  cooldown(host: string): Promise<{ readonly until_wall: number; readonly reason: string } | undefined>;
  /** Whether a circuit is known to be open. */
  isOpen(host: string): Promise<boolean>;
}

/** How long it took until it was so. The machine may be busy: what is tested is what holds from then on. */
async function until(t: TestContext, what: string, isSo: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (!(await isSo())) await delay(1);
  t.diagnostic(`${what} after ${Math.round(performance.now() - startedMs)} ms`);
  // What others have heard a moment ago they need not ask again; on a machine as busy as can be, for so long.
  await delay(450);
}

// On the real clock, with real processes: it is about what one hears of the other.
async function assertHeard(t: TestContext, store: Spyhole): Promise<void> {
  const site = await new Site().start(t);
  const [a, b] = await processes(t, store.url, 2);
  assert.equal((await ask(b, site.origin)).status, 200);
  site.answer = { status: 429, headers: { "retry-after": "3" } };
  const openedMs = performance.now();
  assert.equal((await ask(a, site.origin)).status, 429);
  site.answer = { status: 200 };
  await until(t, "known to others", async () => (await store.cooldown("127.0.0.1")) !== undefined);
  const { reason, until_wall = 0 } = (await store.cooldown("127.0.0.1")) ?? {};
  assert.equal(reason, "retry-after");
  const leftS = until_wall - Date.now() / 1000;
  assert.ok(leftS > 0 && leftS < 3, `${leftS} s`);
  const denied = await ask(b, site.origin);
  assert.equal(denied.code, "DOCSTOKG_BREAKER_OPEN");
  assert.equal(site.asked, 2, "the server was left alone");
  await delay((denied.remainingMs ?? 0) + 5);
  assert.equal((await ask(b, site.origin)).status, 200);
  assert.ok(performance.now() - openedMs >= 3000);
}

async function assertOneProbe(t: TestContext, store: Spyhole): Promise<void> {
  const site = await new Site().start(t);
  const fleet = await processes(t, store.url, 4);
  // One that has not met the store yet may find it slow, and would go on by itself for a second.
  for (const child of fleet) assert.equal((await ask(child, site.origin)).status, 200);
  site.answer = { status: 503 };
  for (let n = 0; n < 2; n += 1) assert.equal((await ask(fleet[0], site.origin)).status, 503);
  await until(t, "open for others", () => store.isOpen("127.0.0.1"));
  const denied = await Promise.all(fleet.map(child => ask(child, site.origin)));
  assert.deepEqual(new Set(denied.map(({ code }) => code)), new Set(["DOCSTOKG_BREAKER_OPEN"]));
  await delay(Math.max(...denied.map(({ remainingMs = 0 }) => remainingMs)) + 5);
  site.asked = 0;
  site.answer = { status: 200, delayMs: 1000 };
  const replies = await Promise.all(fleet.map(child => ask(child, site.origin)));
  assert.equal(site.asked, 1, "one probe for the whole fleet");
  assert.equal(replies.filter(({ status }) => status === 200).length, 1);
  site.answer = { status: 200 };
  await until(t, "closed for others", async () => !(await store.isOpen("127.0.0.1")));
  for (const child of fleet) assert.equal((await ask(child, site.origin)).status, 200);
}

function isOpenIn(note: string | undefined): boolean {
  return note !== undefined && /"isClosed":false/.test(note);
}

async function sqlite(t: TestContext): Promise<Spyhole> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-cut-off-"));
  const file = join(folder, "shared.db");
  t.after(() => rm(folder, { recursive: true, force: true }));
  const look = (query: string, host: string) => {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 1000 });
    try {
      return db.prepare(query).get(host);
    } finally {
      db.close();
    }
  };
  return {
    url: `sqlite:${file}`,
    cooldown: async host => {
      const row = look("SELECT until_wall, reason FROM breaker_cooldowns WHERE host = ?", host);
      return row && { until_wall: Number(row["until_wall"]), reason: String(row["reason"]) };
    },
    isOpen: async host => isOpenIn(look("SELECT note FROM notes WHERE name = ?", `host ${host}`)?.["note"] as string),
  };
}

async function redis(t: TestContext): Promise<Spyhole> {
  const server = await RedisServer.start();
  const client = createClient({ url: server.url });
  await client.connect();
  t.after(async () => {
    client.destroy();
    await server.stop();
  });
  return {
    url: server.url,
    cooldown: async host => {
      const key = `breaker:cooldown:${host}`;
      const text = await client.get(key);
      if (text === null) return undefined;
      assert.ok((await client.ttl(key)) > 0, "it goes away by itself");
      return JSON.parse(text);
    },
    isOpen: async host => isOpenIn((await client.get(`docstokg:note:host ${host}`)) ?? undefined),
  };
}

test("open in one process is open in the other, over a file, where other tools may see it", async t => {
  await assertHeard(t, await sqlite(t));
});

test("after the reset the processes of one file send one probe", async t => {
  await assertOneProbe(t, await sqlite(t));
});

const skip = whyNoRedis();

test("open in one process is open in the other, over redis, where other tools may see it", { skip }, async t => {
  await assertHeard(t, await redis(t));
});

test("after the reset the processes of one redis server send one probe", { skip }, async t => {
  await assertOneProbe(t, await redis(t));
});
