import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { type BreakerRecord, EMPTY_BREAKER_RECORD, setCooldown } from "../../src/core/breaker/breaker-record.ts";
import { StoreError } from "../../src/errors.ts";
import { RedisStore, type RedisStoreOptions } from "../../src/stores/redis/redis-store.ts";
import { LEASE_MS, type LeaseRequest } from "../../src/stores/store.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { BreakableLink } from "./breakable-link.ts";
import { eventually } from "./eventually.ts";
import { recordContract } from "./record-contract.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { ask, kindOf, one } from "./requests.ts";
import { storeContract, type TestedStore } from "./store-contract.ts";

const HOUR_MS = 3_600_000;
/** A killed server refuses connections at once, so no test waits for this: a slow machine must not look like an outage. */
const PATIENT_MS = 600_000;

describe("redis", { skip: whyNoRedis() }, () => {
  let server: RedisServer;
  let stores = 0;

  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server.stop());

  async function opened(
    t: TestContext,
    options: RedisStoreOptions = {},
    url: string = server.url,
  ): Promise<RedisStore> {
    const store = await RedisStore.open(url, { trustMs: 0, timeoutMs: PATIENT_MS, ...options });
    t.after(() => store.close());
    return store;
  }

  /** A server for one test, which may stop or configure it. */
  async function ownServer(t: TestContext, ...args: readonly string[]): Promise<RedisServer> {
    const own = await RedisServer.start(...args);
    t.after(() => own.stop());
    return own;
  }

  async function tested(t: TestContext): Promise<TestedStore> {
    const time = new FakeTime();
    stores += 1;
    const prefix = `test${stores}`;
    return {
      member: () => opened(t, { prefix, time, timeoutMs: 600_000, serverUs: () => time.machineUs() }),
      advance: ms => time.advance(ms),
    };
  }
  storeContract("redis", tested);
  recordContract("redis", tested);

  test('a "wait" reply is repeated without a round trip, and soon requested again', async t => {
    const time = new FakeTime();
    const serverUs = () => time.machineUs();
    const [a, b] = [
      await opened(t, { prefix: "mirror", time, trustMs: 50, timeoutMs: 600_000, serverUs }),
      await opened(t, { prefix: "mirror", time, timeoutMs: 600_000, serverUs }),
    ];
    assert.equal(await kindOf(b, one("k", 1)), "granted");
    assert.deepEqual(await ask(a, one("k", 1)), { kind: "wait", waitMs: 60_000, key: "k", isStricter: false });
    await b.exchange([{ keys: ["k"], written: 0, returned: 1 }], []);
    await time.advance(49);
    assert.deepEqual(await ask(a, one("k", 1)), { kind: "wait", waitMs: 59_951, key: "k", isStricter: false });
    await time.advance(1);
    assert.equal(await kindOf(a, one("k", 1)), "granted");
    // Returned units of this process end the repetition at once.
    assert.equal(await kindOf(a, one("k", 1)), "wait");
    await a.exchange([{ keys: ["k"], written: 0, returned: 1 }], []);
    assert.equal(await kindOf(a, one("k", 1)), "granted");
  });

  test("a process whose clock is two hours off keeps the same limit", async t => {
    const late = { ...systemTime, monotonicUs: () => systemTime.monotonicUs() - 2 * HOUR_MS * 1000 };
    const time = Object.assign(Object.create(systemTime), late, { wallMs: () => systemTime.wallMs() - 2 * HOUR_MS });
    const [a, b] = [await opened(t, { prefix: "off" }), await opened(t, { prefix: "off", time })];
    for (let unit = 0; unit < 4; unit += 1) {
      const store = unit % 2 ? a : b;
      assert.equal(await kindOf(store, one("k", 4, HOUR_MS)), "granted");
      await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
    }
    for (const store of [a, b]) {
      const answer = await ask(store, one("k", 4, HOUR_MS));
      assert.ok(
        answer.kind === "wait" && answer.waitMs > HOUR_MS / 2 && answer.waitMs <= HOUR_MS,
        JSON.stringify(answer),
      );
    }
  });

  test("a script that the server has flushed is loaded again", async t => {
    const store = await opened(t, { prefix: "flushed" });
    assert.equal(await kindOf(store, one("k", 2)), "granted");
    server.cli("SCRIPT", "FLUSH");
    assert.equal(await kindOf(store, one("k", 2)), "granted");
    assert.equal(await kindOf(store, one("k", 2)), "wait");
  });

  test("a record is listed also if more than 10,000 others end before it", async t => {
    const own = await ownServer(t);
    const store = await opened(t, {}, own.url);
    await store.change("process 1", ({ nowUs }) => ({
      record: { next: 1, keepUntilUs: nowUs + 60e6 },
      result: undefined,
    }));
    const soon = Date.now() + 30_000;
    const add = "for n = 1, 10500 do redis.call('ZADD', KEYS[1], ARGV[1], 'host ' .. n) end";
    const index = own.cli("KEYS", "*:index");
    own.cli("EVAL", add, "1", index, String(soon));
    assert.deepEqual(
      (await store.list("process ")).map(({ name }) => name),
      ["process 1"],
    );
  });

  test("a change succeeds however often other processes are faster", async t => {
    const store = await opened(t, { prefix: "busy" });
    let others = 0;
    const seen = await store.change<number, number | undefined>("test a", ({ record, nowUs }) => {
      const keepUntilUs = nowUs + 60_000_000;
      if (others < 60) {
        others += 1;
        server.cli("SET", "busy:record:test a", JSON.stringify({ record: others, keepUntilUs }));
      }
      return { record: { next: -1, keepUntilUs }, result: record };
    });
    assert.equal(seen, 60);
    assert.equal((await store.read("test a")).record, -1);
  });

  test("a record that is equal to the stored one is not written", async t => {
    const store = await opened(t, { prefix: "equal" });
    const change = (keepUntilUs: number) =>
      store.change("test a", () => ({ record: { next: { count: 1 }, keepUntilUs }, result: 0 }));
    const keepUntilUs = (await store.read("test a")).nowUs + 60_000_000;
    await change(keepUntilUs);
    server.cli("PEXPIRE", "equal:record:test a", "999999");
    await change(keepUntilUs);
    assert.ok(Number(server.cli("PTTL", "equal:record:test a")) > 60_000);
    await change(keepUntilUs + 1);
    assert.ok(Number(server.cli("PTTL", "equal:record:test a")) <= 60_001);
  });

  test("a record that is no valid UTF-8 is replaced by the next change", async t => {
    const store = await opened(t, { prefix: "invalid" });
    server.cli("EVAL", "redis.call('SET', KEYS[1], string.char(255, 254))", "1", "invalid:record:test a");
    await store.change("test a", ({ nowUs }) => ({ record: { next: 1, keepUntilUs: nowUs + 60_000_000 }, result: 0 }));
    assert.equal((await store.read("test a")).record, 1);
  });

  test("while the server is unreachable every call fails at once, and the store reconnects", async t => {
    const own = await ownServer(t);
    const store = await opened(t, {}, own.url);
    assert.equal(await kindOf(store, one("k", 2)), "granted");
    await own.stop();
    const message = new RegExp(`^redis at 127.0.0.1:${own.port}`);
    for (let call = 0; call < 3; call += 1)
      await assert.rejects(ask(store, one("k", 2)), { name: "StoreError", message });
    await assert.rejects(store.exchange([], []), StoreError);
    await own.start();
    await eventually(() => store.exchange([], []));
    // The server has lost its data, except for the units that this process still has leased.
    assert.equal(await kindOf(store, one("k", 2)), "granted");
    assert.equal(await kindOf(store, one("k", 2)), "wait");
    await store.exchange([{ keys: ["k"], written: 0, returned: 2 }], []);
    assert.equal(await kindOf(store, one("k", 2)), "granted");
    await own.stop();
    await assert.rejects(ask(store, one("k", 2)), StoreError);
  });

  test("a store opens while the server is unreachable, and works when it is back", async t => {
    const own = await ownServer(t);
    await own.stop();
    const store = await opened(t, {}, own.url);
    await assert.rejects(ask(store, one("k", 1)), StoreError);
    assert.equal(store.processes, 1);
    await own.start();
    await eventually(() => ask(store, one("k", 1)));
    assert.equal(await kindOf(store, one("k", 1)), "wait");
  });

  test("a call to a paused server fails at its timeout, and is not granted later", async t => {
    const own = await ownServer(t);
    const timeoutMs = 700;
    const store = await opened(t, { timeoutMs }, own.url);
    const other = await opened(t, {}, own.url);
    const three = one("k", 3, HOUR_MS);
    // The store with the short timeout reads the server's clock first. The other store shows what was granted.
    await eventually(() => ask(store, one("another key", 1000)));
    assert.equal(await kindOf(other, three), "granted");
    await other.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
    own.pause();
    await assert.rejects(ask(store, three), { name: "StoreError", message: /no reply within 700 ms/ });
    for (let call = 0; call < 4; call += 1) await assert.rejects(ask(store, three), StoreError);
    // The server must refuse calls that are older than their timeout.
    await systemTime.sleep(timeoutMs + 1);
    own.resume();
    await eventually(() => store.exchange([], []));
    // Three per hour and one was written: two are left.
    assert.deepEqual([await kindOf(other, three), await kindOf(other, three)], ["granted", "granted"]);
    assert.equal(await kindOf(other, three), "wait");
  });

  test("a blocked event loop is not taken for a server that does not answer", async t => {
    const own = await ownServer(t);
    const time = new FakeTime();
    const store = await opened(t, { time, timeoutMs: 1000, serverUs: () => time.machineUs() }, own.url);
    own.pause();
    const reply = ask(store, one("k", 1));
    await time.advance(700);
    await time.stall(1200);
    own.resume();
    assert.equal((await reply).kind, "granted");
  });

  test("units that a lost call may have granted count as written, and do not stay leased for ever", async t => {
    const link = await BreakableLink.to(server.port);
    t.after(() => link.close());
    const time = new FakeTime();
    const options = { prefix: "lost", time, serverUs: () => time.machineUs() };
    const store = await opened(t, options, `redis://127.0.0.1:${link.port}`);
    const other = await opened(t, options);
    assert.equal(await kindOf(store, one("k", 3, 500)), "granted");
    // The server grants the units, and the connection breaks before the reply arrives.
    link.isCut = true;
    await assert.rejects(ask(store, one("k", 3, 500)), StoreError);
    link.isCut = false;
    assert.equal(await kindOf(other, one("k", 3, 500)), "granted");
    assert.equal(await kindOf(other, one("k", 3, 500)), "wait", "the units of the lost call count");
    // The store connects again after a pause by its own clock.
    await eventually(async () => {
      await time.advance(10);
      await ask(store, one("k", 3, 500));
    });
    await time.advance(550);
    // Each process has leased one unit, and the lost unit has left the window.
    assert.equal(await kindOf(other, one("k", 3, 500)), "granted");
    assert.equal(await kindOf(other, one("k", 3, 500)), "wait");
  });

  /** Loses a call about one key. Then `act` runs, and the result is how many calls are sent before a reply. */
  async function callsAfterLoss(
    t: TestContext,
    act: (store: RedisStore, time: FakeTime) => Promise<unknown>,
  ): Promise<number> {
    const own = await ownServer(t);
    const link = await BreakableLink.to(own.port);
    t.after(() => link.close());
    const time = new FakeTime();
    const store = await opened(t, { time, serverUs: () => time.machineUs() }, `redis://127.0.0.1:${link.port}`);
    link.isCut = true;
    await assert.rejects(ask(store, one("k", 9)), StoreError);
    link.isCut = false;
    await eventually(async () => {
      await time.advance(50);
      await store.exchange([], []);
    });
    await act(store, time);
    own.pause();
    const before = link.scriptCalls;
    const replies = Array.from({ length: 64 }, (_, index) => ask(store, one(`k${index}`, 1)));
    await systemTime.sleep(200);
    const calls = link.scriptCalls - before;
    own.resume();
    await Promise.all(replies);
    return calls;
  }

  test("after a lost call, calls are sent one at a time until its key is reported, settled or given up", async t => {
    const [claim] = one("k", 9).claims;
    assert.ok(claim !== undefined);
    assert.equal(await callsAfterLoss(t, async () => undefined), 1);
    assert.equal(await callsAfterLoss(t, store => ask(store, one("k", 9))), 4);
    assert.equal(await callsAfterLoss(t, store => store.exchange([{ keys: ["k"], written: 0, returned: 0 }], [])), 4);
    const report = { claim, keys: ["k"], sent: 0, sentAgoUs: 0, known: [0] };
    assert.equal(await callsAfterLoss(t, store => store.exchange([], [], [report])), 4);
    // The server has ended the lease.
    assert.equal(await callsAfterLoss(t, (_, time) => time.advance(LEASE_MS + 1000)), 4);
  });

  test("settlements of a lost call are applied once when they are repeated", async t => {
    const link = await BreakableLink.to(server.port);
    t.after(() => link.close());
    const store = await opened(t, { prefix: "again" }, `redis://127.0.0.1:${link.port}`);
    const three = { ...one("k", 3, 400), least: 3, most: 3 };
    assert.equal(await kindOf(store, three), "granted");
    const settlement = { keys: ["k"], written: 0, returned: 2 };
    link.isCut = true;
    await assert.rejects(store.exchange([settlement], []), StoreError);
    link.isCut = false;
    await eventually(() => store.exchange([settlement], []));
    // One unit is still leased, by this process.
    const two = { ...one("k", 3, 400), least: 2, most: 2 };
    assert.deepEqual(await ask(store, two), { kind: "granted", units: 2, isStricter: false });
    assert.equal(await kindOf(store, one("k", 3, 400)), "wait");
  });

  test("keys of another type and records that cannot be parsed are set aside one by one", async t => {
    const own = await ownServer(t);
    const store = await opened(t, {}, own.url);
    const write = (name: string) =>
      store.change(`test ${name}`, ({ nowUs }) => ({
        record: { next: { name }, keepUntilUs: nowUs + 60_000_000 },
        result: undefined,
      }));
    await write("a.example");
    await write("b.example");
    for (const key of ["docstokg:processes", "docstokg:record:index", "docstokg:record:test a.example"]) {
      own.cli("DEL", key);
      own.cli("RPUSH", key, "a list");
    }
    own.cli("SET", "docstokg:record:test b.example", '{"record":');
    own.cli("RPUSH", "docstokg:v3:k", "a list");
    assert.equal(await kindOf(store, one("k", 1)), "granted");
    await store.exchange([], []);
    assert.equal(store.processes, 1);
    for (const name of ["a.example", "b.example"]) {
      assert.equal((await store.read(`test ${name}`)).record, undefined);
      await write(name);
      assert.deepEqual((await store.read(`test ${name}`)).record, { name });
    }
    assert.deepEqual((await store.list("test ")).length, 2);
    assert.equal(own.cli("KEYS", "*:damaged").trim().split("\n").length, 4);
  });

  test("a server whose replies cannot be parsed fails each call at once, and its connection is closed", async t => {
    const closed: Promise<unknown>[] = [];
    const other = createServer(socket => {
      closed.push(once(socket, "close"));
      socket.on("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"));
    }).listen(0, "127.0.0.1");
    t.after(() => other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const store = await RedisStore.open(`redis://127.0.0.1:${port}`, { timeoutMs: 60_000 });
    t.after(() => store.close());
    await assert.rejects(store.read("a"), /^StoreError: redis at 127\.0\.0\.1:\d+: Unknown RESP type 72 "H"$/);
    await Promise.all(closed);
  });

  test("a password is accepted, and appears in no message", async t => {
    const own = await ownServer(t, "--requirepass", "s3cret:of/them");
    const place = `127.0.0.1:${own.port}`;
    const store = await opened(t, {}, `redis://:${encodeURIComponent("s3cret:of/them")}@${place}/2`);
    assert.equal(await kindOf(store, one("k", 1)), "granted");
    for (const url of [`redis://:wr0ng@${place}`, `redis://${place}`, "redis://:wr0ng@", "http://:wr0ng@localhost"]) {
      await assert.rejects(RedisStore.open(url, { timeoutMs: PATIENT_MS }), error => {
        assert.ok(error instanceof StoreError);
        assert.doesNotMatch(`${error.message} ${JSON.stringify(error.cause)} ${error.stack}`, /wr0ng|s3cret/);
        return true;
      });
    }
  });

  test("a URL of the wrong kind is an error with a remedy", async () => {
    await assert.rejects(
      RedisStore.open(`redis+sentinel://127.0.0.1:${server.port}/limits`, { timeoutMs: PATIENT_MS }),
      /unknown command 'SENTINEL'.* \(a server that is not a sentinel needs a URL that begins with redis:/,
    );
    const time = new FakeTime();
    const opening = RedisStore.open(`rediss://127.0.0.1:${server.port}`, { time, timeoutMs: 1000 });
    await time.advance(1000);
    const plain = await opening;
    const call = assert.rejects(ask(plain, one("k", 1)), /no connection within 1000 ms \(does the server use TLS\?\)/);
    await time.advance(1000);
    await call;
    await plain.close();
  });

  test("without @redis/client the error says how to install it", () => {
    const code = `
      import { registerHooks } from "node:module";
      registerHooks({ resolve(name, context, next) {
        if (name === "@redis/client") throw Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
        return next(name, context);
      } });
      const { RedisStore } = await import(${JSON.stringify(import.meta.resolve("../../src/stores/redis/redis-store.ts"))});
      await RedisStore.open("redis://127.0.0.1").catch(error => console.log(error.name, error.message));`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
    assert.match(stdout, /^StoreError .*npm install @redis\/client/);
  });

  test("with a prefix of its own, the cooldown for other tools has the prefix too", async t => {
    const own = await ownServer(t);
    for (const url of [`${own.url}?prefix=fleet-a`, own.url]) {
      const store = await opened(t, {}, url);
      await store.change<BreakerRecord, void>("host a.example", ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
        const cooldown = { untilUs: nowUs + 60_000_000, reason: "retry-after" };
        const next = setCooldown(record, "serverCooldown", cooldown, nowUs);
        return { record: { next, keepUntilUs: cooldown.untilUs }, result: undefined };
      });
    }
    assert.deepEqual(own.cli("KEYS", "*breaker:cooldown:*").split("\n").sort(), [
      "breaker:cooldown:a.example",
      "fleet-a:breaker:cooldown:a.example",
    ]);
  });

  test("in a cluster the budgets of one request share a slot, and one exchange serves several slots", async t => {
    const file = join(tmpdir(), `docstokg-${process.pid}.conf`);
    t.after(() => rmSync(file, { force: true }));
    const own = await ownServer(t, "--cluster-enabled", "yes", "--cluster-config-file", file);
    own.cli("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    while (!own.cli("CLUSTER", "INFO").includes("cluster_state:ok")) await systemTime.sleep(20);
    const store = await opened(t, {}, `${own.url}?cluster=true`);
    const way = (host: string, total: string): LeaseRequest => ({
      claims: [...one(`lane ${host} metadata`, 5).claims, ...one(`total ${total}`, 2).claims],
      least: 1,
      most: 1,
    });
    const asks = [way("a.org", "a.org"), way("b.org", "group"), way("c.org", "group"), way("d.org", "group")];
    const services = [way("service arxiv", "service arxiv"), one("lane service ncbi metadata", 1)];
    const answers = await store.exchange([], [...asks, ...services]);
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ["granted", "granted", "granted", "wait", "granted", "granted"],
    );
    await store.exchange([{ keys: ["lane b.org metadata", "total group"], written: 0, returned: 1 }], []);
    assert.equal(await kindOf(store, way("d.org", "group")), "granted");
    assert.deepEqual(own.cli("KEYS", "docstokg{*").split("\n").sort(), [
      "docstokg{a.org}:v3:lane a.org metadata",
      "docstokg{a.org}:v3:total a.org",
      "docstokg{group}:v3:lane b.org metadata",
      "docstokg{group}:v3:lane c.org metadata",
      "docstokg{group}:v3:lane d.org metadata",
      "docstokg{group}:v3:total group",
      "docstokg{service arxiv}:v3:lane service arxiv metadata",
      "docstokg{service arxiv}:v3:total service arxiv",
      "docstokg{service ncbi}:v3:lane service ncbi metadata",
    ]);
  });
});
