import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import { BreakerOpenError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import { loadPolicy, type PolicySources } from "../policy/load.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { Store } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";

async function setUp(sources: PolicySources = {}, time = new FakeTime(), store?: Store) {
  const policy = await loadPolicy(sources);
  const registry = new BreakerRegistry({}, { time, random: () => 0 });
  breakersOf(registry).reload(policy.breakers.resolved);
  const gate = new Gate(policy.ratelimits.resolved, time, { breakers: registry, store, random: () => 0.5 });
  const entryOf = (url: string) => {
    const { host, pathname: path } = new URL(`https://${url}`);
    return { host, path, role: "metadata", maxWaitMs: 0 } as const;
  };
  /** Sends a request and reports its status. */
  const send = async (url: string, status: number, retryAfterS?: number) => {
    const grant = await gate.enter({ ...entryOf(url), maxWaitMs: Number.POSITIVE_INFINITY });
    const retryAfterMs = retryAfterS === undefined ? undefined : retryAfterS * 1000;
    grant.report({ outcome: outcomeOfResponse({ status, retryAfterMs }), status, retryAfterMs });
    grant.release();
  };
  const isDenied = (url: string) => registry.check(entryOf(url)) !== undefined;
  return { registry, gate, time, send, isDenied, entryOf };
}

describe("a Retry-After holds what the service shares, and nothing else on the host", () => {
  test("export.arxiv.org holds arxiv.org", async () => {
    const { send, isDenied, registry } = await setUp();
    await send("export.arxiv.org/api/query", 429, 120);
    assert.ok(isDenied("arxiv.org/pdf/2104.1"));
    assert.ok(isDenied("export.arxiv.org/oai"));
    assert.equal(isDenied("zenodo.org/api"), false);
    assert.deepEqual([registry.state("arxiv.org").host, registry.remainingMs("arxiv.org")], ["service arxiv", 120_000]);
  });

  test("Europe PMC does not hold OLS, nor the rest of www.ebi.ac.uk", async () => {
    const { send, isDenied } = await setUp();
    await send("www.ebi.ac.uk/europepmc/webservices/rest/search", 429, 120);
    assert.ok(isDenied("www.europepmc.org/article/1"));
    assert.equal(isDenied("www.ebi.ac.uk/ols4/api"), false);
    assert.equal(isDenied("www.ebi.ac.uk/chebi"), false);
  });

  test("CDX holds the availability API of archive.org, in every spelling of the path", async () => {
    const { send, isDenied } = await setUp();
    await send("web.archive.org/CDX/search/cdx", 429, 60);
    assert.ok(isDenied("archive.org/wayback/available"));
    assert.ok(isDenied("web.archive.org//cdx/search"));
    assert.equal(isDenied("archive.org/details/x"), false);
    assert.equal(isDenied("web.archive.org/web/2020/https://x.example/"), false);
  });

  test("of a host that only breakers name with a port holds the host on every port", async () => {
    const { send, isDenied } = await setUp({ env: { DOCSTOKG_BREAKERS: "zenodo.org:80=fail_max:3" } });
    await send("zenodo.org:80/api", 429, 60);
    assert.ok(isDenied("zenodo.org/api"));
  });
});

test("failures at one member open the circuit of the service, and a success at another member closes it", async () => {
  const { send, isDenied, time, registry } = await setUp();
  for (let call = 0; call < 3; call += 1) {
    const sent = send("export.arxiv.org/api/query", 500);
    await time.advance(4000);
    await sent;
  }
  assert.ok(isDenied("arxiv.org/pdf/1"));
  await time.advance(180_000);
  await send("arxiv.org/pdf/1", 200);
  assert.equal(registry.state("export.arxiv.org").state, "closed");
});

test("a member that breakers list has circuits of its own, and shares the cooldown", async () => {
  const breakers = { hosts: { "export.arxiv.org": { fail_max: 1 } } };
  const { send, isDenied } = await setUp({ breakers });
  await send("export.arxiv.org/api", 500);
  assert.ok(isDenied("export.arxiv.org/api"));
  assert.equal(isDenied("arxiv.org/pdf/1"), false);
  const other = await setUp({ breakers });
  await other.send("export.arxiv.org/api", 429, 60);
  assert.ok(other.isDenied("arxiv.org/pdf/1"));
});

test("an operator can open one host of a service, or the service; closing a host closes its service too", async () => {
  const { registry, isDenied, gate, entryOf } = await setUp();
  registry.open("export.arxiv.org", 60);
  assert.ok(isDenied("export.arxiv.org/api"));
  assert.equal(isDenied("arxiv.org/pdf/1"), false);
  registry.close("export.arxiv.org");
  registry.open("service arxiv", 60, "maintenance");
  assert.ok(isDenied("arxiv.org/pdf/1"));
  assert.throws(
    () => gate.enter(entryOf("arxiv.org/pdf/1")),
    (error: unknown) =>
      error instanceof BreakerOpenError &&
      error.message.includes("forced open for service arxiv") &&
      error.message.includes('"docstokg breaker close service:arxiv"'),
  );
  registry.close("arxiv.org");
  assert.equal(isDenied("export.arxiv.org/api"), false);
});

test("an order to open one role applies also where the host or service named does not own the circuit", async () => {
  const breakers = { hosts: { "export.arxiv.org": { fail_max: 1 }, "shared.example": { per: "partition" } } } as const;
  const { registry, time, gate, entryOf } = await setUp({ breakers });
  const denied = (request: Parameters<typeof registry.check>[0]) => registry.check(request)?.host;
  const order = { kind: "open", ms: 60_000, reason: "cli-open:test", isReplacing: false } as const;
  const open = (unit: string) => breakersOf(registry).giveOrder({ unit, role: "landing" }, order);
  for (const [unit, request] of [
    ["arxiv.org", { host: "arxiv.org", path: "/abs/1" }],
    ["service arxiv", { host: "export.arxiv.org", path: "/api" }],
    ["shared.example", { host: "shared.example", partition: "tenant" }],
  ] as const) {
    registry.allow({ ...request, role: "landing" }).release();
    open(unit);
    assert.equal(denied({ ...request, role: "landing" }), unit);
    assert.equal(breakersOf(registry).isStopped({ ...request, role: "landing" }), true);
    assert.throws(() => registry.allow({ ...request, role: "landing" }), /forced open/);
    assert.equal(denied({ ...request, role: "metadata" }), undefined);
    if (unit === "arxiv.org") assert.equal(denied({ host: "static.arxiv.org", role: "landing" }), undefined);
    breakersOf(registry).giveOrder({ unit, role: "landing" }, { kind: "close" });
    assert.equal(denied({ ...request, role: "landing" }), undefined);
  }
  open("arxiv.org");
  const waiting = gate.enter({ ...entryOf("arxiv.org/abs/1"), role: "landing", maxWaitMs: 90_000 });
  await time.advance(60_000);
  (await waiting).release();
});

test("a Retry-After is capped by the documented penalty of the service", async () => {
  for (const [url, capS] of [
    ["api.osf.io/v2/nodes", 3600],
    ["api.openaire.eu/graph", 3600],
    ["api.openalex.org/works", 86_400],
    ["raw.githubusercontent.com/x", 3600],
    ["web.archive.org/cdx/search", 3600],
    ["api.crossref.org/works", 900],
  ] as const) {
    const { send, registry, entryOf } = await setUp();
    await send(url, 429, 1_000_000);
    const { host, path } = entryOf(url);
    assert.equal(registry.remainingMs(host, path), capS * 1000, url);
  }
});

test("a cooldown of a service holds its members in the other processes of the store", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const one = await setUp({}, time, store.member("one"));
  const two = await setUp({}, time, store.member("two"));
  await one.send("export.arxiv.org/api", 429, 120);
  await time.advance(5000);
  await assert.rejects(
    async () => two.gate.enter(two.entryOf("arxiv.org/pdf/1")),
    (error: unknown) => error instanceof BreakerOpenError && error.host === "service arxiv",
  );
  const other = await two.gate.enter({ ...two.entryOf("zenodo.org/api"), maxWaitMs: 1000 });
  other.release();
  await one.gate.close();
  await two.gate.close();
});

test("the key of a host names the service whose circuit is open, as its refusals do, also if the host had an order", async () => {
  const services = { pair: { members: ["a.example", "b.example"] } };
  const breakers = { extends: "none", services: { pair: { fail_max: 2 } } } as const;
  const { registry, time, send, entryOf } = await setUp({ ratelimits: { services }, breakers });
  registry.open("a.example", 1);
  await time.advance(1000);
  for (let call = 0; call < 2; call += 1) await send("b.example/", 503);
  const owner = { kind: "breaker", owner: "service pair", limit: "open circuit (failures)" };
  assert.deepEqual(registry.check(entryOf("a.example/"))?.constraint, owner);
  assert.deepEqual(breakersOf(registry).denialOfKey("a.example", "metadata")?.constraint, owner);
});
