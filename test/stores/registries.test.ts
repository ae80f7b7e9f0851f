import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import type { BreakerEvent } from "../../src/breaker/breaker-events.ts";
import { BreakerOpenError, ConfigError, StoreError } from "../../src/errors.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import type { BreakersOptions } from "../../src/policy/breaker-schema.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";

const circuit = { fail_max: 3, reset_timeout_s: 600 };
const POLICY: BreakersOptions = {
  defaults: { ...circuit, roles: { metadata: circuit }, half_open: { jitter_ms: 0 } },
  advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
};

class Registry extends BreakerRegistry {
  readonly events: BreakerEvent[] = [];

  constructor(store: StoreName, policy = POLICY) {
    super(policy, { store });
    this.listen(event => this.events.push(event));
  }

  /** How a call ends: "answered", or the name of the error. */
  async call(host: string, status = 200, retryAfterMs?: number): Promise<string> {
    try {
      await this.run({ host }, async permit =>
        permit.report({ outcome: this.classify({ status, retryAfterMs }), status, retryAfterMs }),
      );
      return "answered";
    } catch (error) {
      return error instanceof BreakerOpenError ? String(error.reason) : (error as Error).name;
    }
  }

  /** Waits until this process knows that the host has this state. */
  async knows(host: string, state: string): Promise<void> {
    while (this.state(host).state !== state) {
      await this.refresh({ host });
      await systemTime.sleep(5);
    }
  }
}

/** The same for each kind of store: `urlOf` gives an empty one. */
function registryContract(urlOf: (t: TestContext) => StoreName): void {
  function two(t: TestContext, policy = POLICY): readonly [Registry, Registry] {
    const url = urlOf(t);
    const pair = [new Registry(url, policy), new Registry(url, policy)] as const;
    t.after(() => Promise.all(pair.map(registry => registry.disconnect())));
    return pair;
  }

  test("failures of two registries count together, and the circuit opens in both", async t => {
    const [a, b] = two(t);
    assert.equal(await a.call("a.example", 503), "answered");
    assert.equal(await b.call("a.example", 503), "answered");
    assert.equal(await a.call("a.example", 503), "answered");
    await Promise.all([a.knows("a.example", "open"), b.knows("a.example", "open")]);
    assert.deepEqual([await a.call("a.example"), await b.call("a.example")], ["failures", "failures"]);
    assert.equal(await b.call("other.example"), "answered");
  });

  test("a Retry-After that one registry receives is a cooldown of the other, with its end", async t => {
    const [a, b] = two(t);
    await a.call("a.example", 429, 120_000);
    await b.knows("a.example", "open");
    assert.equal(await b.call("a.example"), "retry-after");
    const { remainingMs } = b.state("a.example");
    assert.ok(remainingMs > 60_000 && remainingMs <= 121_000, `${remainingMs} ms`);
    assert.throws(() => b.allow({ host: "a.example" }), BreakerOpenError);
  });

  test("an order of one registry applies to the other without a call of it", async t => {
    const [a, b] = two(t);
    await Promise.all([a.call("a.example"), b.call("a.example")]);
    const opened = eventOf(b, "breaker_cooldown_set");
    a.open("a.example", 300, "maintenance");
    await opened;
    assert.equal(await b.call("a.example"), "cli-open:maintenance");
    const ended = eventOf(a, "breaker_cooldown_ended");
    b.close("a.example");
    await ended;
    assert.equal(await a.call("a.example"), "answered");
  });

  test("of two registries only one makes the trial call of a half-open circuit, and its success closes both", async t => {
    const half = { fail_max: 1, reset_timeout_s: 0.2 };
    const [a, b] = two(t, { ...POLICY, defaults: { ...POLICY.defaults, ...half, roles: { metadata: half } } });
    await a.call("a.example", 503);
    await Promise.all([a.knows("a.example", "half_open"), b.knows("a.example", "half_open")]);
    const trial = Promise.withResolvers<void>();
    const running = await Promise.race(
      [a, b].map(async registry => {
        const started = Promise.withResolvers<Registry>();
        const ended = registry.run({ host: "a.example" }, async () => {
          started.resolve(registry);
          await trial.promise;
        });
        ended.catch(() => undefined);
        return { first: await started.promise, ended };
      }),
    );
    const other = running.first === a ? b : a;
    await other.refresh({ host: "a.example" });
    assert.equal(await other.call("a.example"), "failures");
    trial.resolve();
    await running.ended;
    await Promise.all([a.knows("a.example", "closed"), b.knows("a.example", "closed")]);
    assert.deepEqual([await a.call("a.example"), await b.call("a.example")], ["answered", "answered"]);
  });

  test("a program with a registry ends without disconnect", async t => endsByItself(urlOf(t)));

  test("allow decides by what refresh has read", async t => {
    const [a, b] = two(t);
    await a.call("a.example", 429, 120_000);
    await a.disconnect();
    b.allow({ host: "b.example" }).release();
    await b.refresh({ host: "a.example" });
    assert.throws(() => b.allow({ host: "a.example" }), { reason: "retry-after" });
    // Without the store the registry goes on by what it knows.
    await b.disconnect();
    assert.equal(await b.call("a.example"), "retry-after");
    b.close("a.example");
    assert.equal(await b.call("a.example"), "answered");
  });
}

/** A program that does not disconnect ends all the same (law S8). A program that does not end fails by the limit of the test. */
async function endsByItself(store: StoreName): Promise<void> {
  const file = join(import.meta.dirname, "registry-exit-process.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [file, store]);
  assert.equal(stdout, "ended\n");
}

function eventOf(registry: Registry, name: BreakerEvent["event_type"]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = registry.listen(({ event_type }) => {
    if (event_type !== name) return;
    stop();
    resolve();
  });
  return promise;
}

describe("registries on SQLite", () => {
  registryContract(() => `sqlite:${join(temporaryFolder("registries"), "store.db")}`);

  test("a file of another program rejects run and refresh, and stays as it is", async t => {
    const file = join(temporaryFolder("registries"), "list.csv");
    writeFileSync(file, "a list of the user\n".repeat(100));
    const registry = new Registry(`sqlite:${file}`);
    t.after(() => registry.disconnect());
    await assert.rejects(registry.refresh({ host: "a.example" }), StoreError);
    assert.equal(await registry.call("a.example"), "StoreError");
    assert.deepEqual(
      registry.events.filter(({ event_type }) => event_type === "store_away").length,
      1,
      JSON.stringify(registry.events),
    );
  });
});

describe("registries on Redis", { skip: whyNoRedis() }, () => {
  let server: RedisServer;
  let prefixes = 0;
  before(async () => {
    server = await RedisServer.start();
  });
  after(() => server?.stop());
  registryContract(() => {
    prefixes += 1;
    return `${server.url}?prefix=registries-${prefixes}` as StoreName;
  });
});

describe("registries on PostgreSQL", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  let schemas = 0;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());
  registryContract(() => {
    schemas += 1;
    return `postgres://docstokg@127.0.0.1:${server.port}/postgres?schema=registries_${schemas}`;
  });
});

test("a store that does not answer leaves each registry to its own circuits, and is reported once", async t => {
  const refusing = createServer().listen(0, "127.0.0.1");
  await once(refusing, "listening");
  const { port } = refusing.address() as { port: number };
  refusing.close();
  await once(refusing, "close");
  const registry = new Registry(`redis://127.0.0.1:${port}`);
  t.after(() => registry.disconnect());
  const outcomes: string[] = [];
  for (let call = 0; call < 5; call += 1) outcomes.push(await registry.call("a.example", 503));
  assert.deepEqual(outcomes, ["answered", "answered", "answered", "failures", "failures"]);
  const away = registry.events.filter(({ event_type }) => event_type === "store_away");
  assert.deepEqual(
    away.map(event => ({ ...event, message: "" })),
    [{ event_type: "store_away", processes: 1, mode: "share", message: "" }],
  );
});

test("an invalid name of a store and a configured cooldown_store are ConfigErrors", () => {
  assert.throws(() => new BreakerRegistry({}, { store: "mysql://h" as StoreName }), ConfigError);
  assert.throws(
    () => new BreakerRegistry({ advanced: { cooldown_store: { backend: "redis", dsn: "redis://h" } } }),
    /pass the option store to share circuits and cooldowns/,
  );
});
