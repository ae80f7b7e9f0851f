/**
 * Real processes, servers and stores on a clock that the test steps: cooldowns, probes and failures of one process apply
 * to the others.
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { createClient } from "@redis/client";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import type { Order, Reply } from "./shared-breaker-process.ts";

const RETRY_AFTER_S = 600;
/** Longer than a process uses a record without reading it again: 25 ms, or two round trips of at most 200 ms. */
const STALE_MS = 1000;

class Site {
  answer: { status: number; headers?: Record<string, string>; until?: Promise<void> } = { status: 200 };
  requests = 0;
  origin = "";

  async start(t: TestContext): Promise<this> {
    const server = createServer(async (_, response) => {
      this.requests += 1;
      const { status, headers = {}, until } = this.answer;
      await until;
      response.writeHead(status, headers).end();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return this;
  }
}

class Member {
  readonly #child: ChildProcess;

  static async start(t: TestContext, store: string): Promise<Member> {
    const child = fork(resolve(import.meta.dirname, "shared-breaker-process.ts"), [store]);
    t.after(async () => {
      const exit = once(child, "exit");
      if (child.kill("SIGKILL")) await exit;
    });
    await once(child, "message");
    return new Member(child);
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  fetch(url: string): Promise<Reply> {
    return this.#do({ fetch: url });
  }

  async step(ms: number): Promise<void> {
    await this.#do({ stepMs: ms });
  }

  async #do(order: Order): Promise<Reply> {
    const reply = once(this.#child, "message");
    this.#child.send(order);
    return (await reply)[0];
  }
}

/** The store as other tools see it. */
interface StoreView {
  readonly url: string;
  cooldown(host: string): Promise<{ readonly until_wall: number; readonly reason: string } | undefined>;
  /** What the processes know about a host, as JSON. */
  record(host: string): Promise<string | undefined>;
}

/** Waits for what another process is about to write. */
async function eventually<Value>(read: () => Promise<Value | undefined | false>): Promise<Value> {
  for (;;) {
    const value = await read();
    if (value !== undefined && value !== false) return value;
    await systemTime.sleep(1);
  }
}

async function stepAll(members: readonly Member[], ms: number): Promise<void> {
  await Promise.all(members.map(member => member.step(ms)));
}

async function assertCooldownIsShared(t: TestContext, store: StoreView): Promise<void> {
  const site = await new Site().start(t);
  const members = await Promise.all([Member.start(t, store.url), Member.start(t, store.url)]);
  const [a, b] = members;
  assert.equal((await b.fetch(site.origin)).status, 200);
  site.answer = { status: 429, headers: { "retry-after": String(RETRY_AFTER_S) } };
  const beforeS = Date.now() / 1000;
  assert.equal((await a.fetch(site.origin)).status, 429);
  site.answer = { status: 200 };
  const { reason, until_wall } = await eventually(() => store.cooldown("127.0.0.1"));
  assert.equal(reason, "retry-after");
  assert.ok(until_wall >= beforeS + RETRY_AFTER_S, `${until_wall - beforeS} s`);
  await stepAll(members, STALE_MS);
  const denied = await b.fetch(site.origin);
  assert.equal(denied.code, "DOCSTOKG_BREAKER_OPEN");
  assert.equal(site.requests, 2, "the refused call sent nothing");
  await stepAll(members, denied.remainingMs ?? 0);
  assert.equal((await b.fetch(site.origin)).status, 200);
}

async function assertOneProbe(t: TestContext, store: StoreView): Promise<void> {
  const site = await new Site().start(t);
  const members = await Promise.all(Array.from({ length: 4 }, () => Member.start(t, store.url)));
  const first = members[0] as Member;
  for (const member of members) assert.equal((await member.fetch(site.origin)).status, 200);
  site.answer = { status: 503 };
  for (let n = 0; n < 2; n += 1) assert.equal((await first.fetch(site.origin)).status, 503);
  await eventually(() => isOpen(store));
  await stepAll(members, STALE_MS);
  const denied = await Promise.all(members.map(member => member.fetch(site.origin)));
  assert.deepEqual(
    denied.map(({ code }) => code),
    Array(4).fill("DOCSTOKG_BREAKER_OPEN"),
  );
  await stepAll(members, Math.max(...denied.map(({ remainingMs = 0 }) => remainingMs)));

  const { promise: until, resolve: answerProbe } = Promise.withResolvers<void>();
  site.requests = 0;
  site.answer = { status: 200, until };
  const calls = members.map(member => member.fetch(site.origin));
  // The probe is answered when the other three have been refused.
  let refused = 0;
  for (const call of calls) {
    void call.then(({ code }) => {
      if (code === "DOCSTOKG_BREAKER_OPEN") refused += 1;
      if (refused === 3) answerProbe();
    });
  }
  const replies = await Promise.all(calls);
  assert.equal(site.requests, 1, "one probe for all processes");
  assert.equal(replies.filter(({ status }) => status === 200).length, 1);
  site.answer = { status: 200 };
  await eventually(async () => !(await isOpen(store)));
  await stepAll(members, STALE_MS);
  for (const member of members) assert.equal((await member.fetch(site.origin)).status, 200);
}

/** Two failures open the circuit, also if each was in another process. */
async function assertFailuresAreCounted(t: TestContext, store: StoreView): Promise<void> {
  const site = await new Site().start(t);
  const members = await Promise.all([
    Member.start(t, store.url),
    Member.start(t, store.url),
    Member.start(t, store.url),
  ]);
  const [a, b, c] = members;
  const hasFailures = async () => (await store.record("127.0.0.1"))?.includes('"counts"');
  const fail = async (member: Member) => {
    site.answer = { status: 503 };
    assert.equal((await member.fetch(site.origin)).status, 503);
    site.answer = { status: 200 };
  };
  await fail(a);
  await eventually(hasFailures);
  await stepAll(members, STALE_MS);
  assert.equal((await c.fetch(site.origin)).status, 200, "a success of another process resets the count");
  await eventually(async () => !(await hasFailures()));
  await stepAll(members, STALE_MS);
  await fail(b);
  await eventually(hasFailures);
  await stepAll(members, STALE_MS);
  await fail(a);
  await eventually(() => isOpen(store));
  await stepAll(members, STALE_MS);
  const denied = await Promise.all(members.map(member => member.fetch(site.origin)));
  assert.deepEqual(
    denied.map(({ code }) => code),
    Array(3).fill("DOCSTOKG_BREAKER_OPEN"),
  );
}

/** A process that cannot connect opens the circuit for itself only. */
async function assertConnectErrorsStayLocal(t: TestContext, store: StoreView): Promise<void> {
  const site = await new Site().start(t);
  const members = await Promise.all([Member.start(t, store.url), Member.start(t, store.url)]);
  const [a, b] = members;
  const refusing = await closedPort();
  for (let n = 0; n < 2; n += 1) assert.equal((await a.fetch(refusing)).code, "ECONNREFUSED");
  assert.equal((await a.fetch(site.origin)).code, "DOCSTOKG_BREAKER_OPEN");
  await eventually(async () => (await store.record("127.0.0.1"))?.includes('"unreached":[{'));
  await stepAll(members, STALE_MS);
  assert.equal((await b.fetch(site.origin)).status, 200);
  await stepAll(members, STALE_MS);
  assert.equal((await a.fetch(site.origin)).code, "DOCSTOKG_BREAKER_OPEN");
}

/** An origin on which no server listens. */
async function closedPort(): Promise<string> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}/`;
}

async function isOpen(store: StoreView): Promise<boolean> {
  return (await store.record("127.0.0.1"))?.includes('"isClosed":false') === true;
}

// Removed after the tests: their processes, which end with them, write to it.
const folder = temporaryFolder("shared-breakers");

function sqlite(name: string): StoreView {
  const file = join(folder, name);
  const row = (query: string, parameter: string) => {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 60_000 });
    try {
      return db.prepare(query).get(parameter);
    } finally {
      db.close();
    }
  };
  return {
    url: `sqlite:${file}`,
    cooldown: async host => {
      const found = row("SELECT until_wall, reason FROM breaker_cooldowns WHERE host = ?", host);
      return found && { until_wall: Number(found["until_wall"]), reason: String(found["reason"]) };
    },
    record: async host => row("SELECT record FROM records WHERE name = ?", `host ${host}`)?.["record"] as string,
  };
}

async function redis(t: TestContext): Promise<StoreView> {
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
      assert.ok((await client.ttl(key)) > 0, "the key expires");
      return JSON.parse(text);
    },
    record: async host => (await client.get(`docstokg:record:host ${host}`)) ?? undefined,
  };
}

test("a cooldown set by one process holds in the other, over a file, in the table that other tools read", async t => {
  await assertCooldownIsShared(t, sqlite("cooldown.db"));
});

test("after the reset timeout the processes that share a file send one probe", async t => {
  await assertOneProbe(t, sqlite("probe.db"));
});

test("failures of the processes that share a file are counted together", async t => {
  await assertFailuresAreCounted(t, sqlite("failures.db"));
});

test("a process that cannot connect opens the circuit for no process that shares a file with it", async t => {
  await assertConnectErrorsStayLocal(t, sqlite("network.db"));
});

const skip = whyNoRedis();

test("a cooldown set by one process holds in the other, over redis, in the key that other tools read", {
  skip,
}, async t => {
  await assertCooldownIsShared(t, await redis(t));
});

test("after the reset timeout the processes that share a redis server send one probe", { skip }, async t => {
  await assertOneProbe(t, await redis(t));
});

test("failures of the processes that share a redis server are counted together", { skip }, async t => {
  await assertFailuresAreCounted(t, await redis(t));
});

test("a process that cannot connect opens the circuit for no process that shares a redis server with it", {
  skip,
}, async t => {
  await assertConnectErrorsStayLocal(t, await redis(t));
});
