import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { serve } from "../../test/http/kit.ts";
import { RedisServer, whyNoRedis } from "../../test/stores/redis-server.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { BreakerOpenError, RateLimitExceeded } from "../errors.ts";
import { OntologyManager } from "./manager.ts";
import { createOntologyHub, ontologyLimits } from "./ontology-hub.ts";
import { parseOntologySettings } from "./service-rates.ts";

/** A hub as `ontofetch` opens it, with a shared folder and a server. */
async function setUp(t: TestContext, rate: string, limits?: string, variables = {}) {
  const folder = temporaryFolder("ontofetch");
  const env: Record<string, string> = { ...variables };
  if (limits !== undefined) {
    env["DOCSTOKG_RLIMITS_YAML"] = join(folder, "ratelimits.yaml");
    await writeFile(env["DOCSTOKG_RLIMITS_YAML"], limits);
  }
  const server = await serve(t, (_request, response) => response.end("x"));
  const rates = parseOntologySettings({ default: rate });
  const settings = { rates, sharedDir: folder, store: join(folder, "store"), allowsPrivate: true };
  const hub = await createOntologyHub(settings, { env });
  t.after(() => hub.close());
  const send = async (maxWaitMs: number) => {
    const call = { service: "direct", role: "artifact", maxWaitMs, maxBreakerWaitMs: 0 } as const;
    const { body } = await hub.request(`${server.origin}/x.obo`, call);
    await body.dump();
  };
  return { folder, server, send };
}

test("the limit of a host's role holds beside the limit of the service: the stricter one counts", async t => {
  const { server, send } = await setUp(t, "8/second", "hosts:\n  127.0.0.1: { artifact: { rates: 1/HOUR } }\n");
  await send(60_000);
  await assert.rejects(send(1000), RateLimitExceeded);
  assert.equal(server.requests.length, 1);
});

test("the manager and ontofetch share one count and one cooldown in one folder", async t => {
  const { folder, server, send } = await setUp(t, "2/hour");
  const manager = new OntologyManager({ default: "2/hour", shared_dir: folder });
  t.after(() => manager.close());
  await manager.acquire("direct", "127.0.0.1");
  await send(60_000);
  await assert.rejects(send(1000), RateLimitExceeded);
  await assert.rejects(manager.acquire("direct", "127.0.0.1", { mode: "fail" }), RateLimitExceeded);
  assert.equal(server.requests.length, 1);

  const other = await setUp(t, "100/second");
  const peer = new OntologyManager({ default: "100/second", shared_dir: other.folder });
  t.after(() => peer.close());
  await peer.cooldownFor("direct:127.0.0.1", 400);
  await assert.rejects(other.send(1000), (error: unknown) => {
    assert.ok(error instanceof BreakerOpenError, String(error));
    assert.equal(error.reason, "retry-after");
    return true;
  });
  assert.equal(other.server.requests.length, 0);
});

test("a rate of null is no rate limit in the policy", async () => {
  const rates = parseOntologySettings({ default: null, per_service: { ols: "4/second" } });
  const { services } = await ontologyLimits(rates, {});
  assert.equal(services?.["direct"]?.artifact?.rates, "none");
  assert.equal(services?.["direct"]?.total?.rates, "none");
  assert.equal(services?.["ols"]?.total?.rates, "4/SECOND");
});

test("machines with the same backend in their policies share one limit", { skip: whyNoRedis() }, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  const env = { DOCSTOKG_RLIMIT_BACKEND: "redis", DOCSTOKG_RLIMIT_DSN: redis.url };
  const [one, other] = [await setUp(t, "1/hour", undefined, env), await setUp(t, "1/hour", undefined, env)];
  await one.send(60_000);
  await assert.rejects(other.send(1000), RateLimitExceeded);
  assert.equal(other.server.requests.length, 0);
});
