import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type SimulatedRequest, text } from "./exchange.ts";
import type { EnforcedLimit } from "./limit-counter.ts";
import { type AdmissionDecision, LimitEnforcer } from "./limit-enforcer.ts";
import { LIMITS } from "./limits.ts";

function requestTo(url: string, more: Partial<SimulatedRequest> = {}): SimulatedRequest {
  const { host, pathname, search, searchParams } = new URL(url);
  const where = { host, path: pathname, search, query: searchParams };
  return { method: "GET", isTls: true, ...where, headers: {}, body: "", earlierRequests: 0, wallMs: 0, ...more };
}

function limit(more: Partial<EnforcedLimit>): EnforcedLimit {
  return { name: "a", at: ["a.example"], rates: "2/SECOND", refuse: () => text("no", 429), ...more };
}

function kinds(
  enforcer: LimitEnforcer,
  atMs: readonly number[],
  url = "https://a.example/",
): readonly AdmissionDecision["kind"][] {
  return atMs.map(ms => enforcer.decide(requestTo(url), ms * 1000).kind);
}

test("a request is rejected while its window is full, and admitted when the oldest request leaves it", () => {
  const enforcer = new LimitEnforcer([limit({})]);
  assert.deepEqual(kinds(enforcer, [0, 10, 20, 999.999, 1000, 1009, 1010]), [
    "admitted",
    "admitted",
    "rejected",
    "rejected",
    "admitted",
    "rejected",
    "admitted",
  ]);
});

test("admitted requests never exceed the limit in any window, and no request within it is rejected", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(400), { maxLength: 80 }), fc.integer({ min: 1, max: 5 }), (gapsMs, most) => {
      const enforcer = new LimitEnforcer([limit({ rates: `${most}/SECOND` })]);
      const served: number[] = [];
      let nowMs = 0;
      for (const gapMs of gapsMs) {
        nowMs += gapMs;
        const isFull = served.filter(ms => ms > nowMs - 1000).length >= most;
        const [kind] = kinds(enforcer, [nowMs]);
        assert.equal(kind, isFull ? "rejected" : "admitted");
        if (!isFull) served.push(nowMs);
      }
    }),
  );
});

test("if one of several limits is full, none is charged", () => {
  const wide = limit({ name: "wide", at: ["a.example", "b.example"], rates: "3/SECOND" });
  const narrow = limit({ name: "narrow", at: ["a.example/narrow"], rates: "1/SECOND" });
  const enforcer = new LimitEnforcer([wide, narrow]);
  assert.deepEqual(kinds(enforcer, [0, 0, 0, 0], "https://a.example/narrow/x"), [
    "admitted",
    "rejected",
    "rejected",
    "rejected",
  ]);
  assert.deepEqual(kinds(enforcer, [1, 1, 1], "https://b.example/"), ["admitted", "admitted", "rejected"]);
});

test("a path matches if it begins with whole segments of the prefix", () => {
  const enforcer = new LimitEnforcer([limit({ at: ["a.example/api"], rates: "1/MINUTE" })]);
  assert.deepEqual(kinds(enforcer, [0], "https://a.example/api"), ["admitted"]);
  assert.deepEqual(kinds(enforcer, [1], "https://a.example/api/x"), ["rejected"]);
  assert.deepEqual(kinds(enforcer, [2], "https://a.example/apiary"), ["admitted"]);
});

test("a concurrency slot is freed once per request", () => {
  const enforcer = new LimitEnforcer([limit({ rates: "100/SECOND", maxConcurrent: 1 })]);
  const first = enforcer.decide(requestTo("https://a.example/"), 0);
  assert.deepEqual(kinds(enforcer, [1]), ["rejected"]);
  assert.ok(first.kind === "admitted");
  first.release();
  first.release();
  assert.deepEqual(kinds(enforcer, [2, 3]), ["admitted", "rejected"]);
  assert.equal(enforcer.report()[0]?.mostConcurrent, 2);
});

test("the ledger counts arrivals, rejected ones included", () => {
  const enforcer = new LimitEnforcer([limit({})]);
  kinds(enforcer, [0, 1, 2, 3, 5000]);
  const [{ requests, served, rejected, windows } = assert.fail()] = enforcer.report();
  assert.deepEqual({ requests, served, rejected }, { requests: 5, served: 3, rejected: 2 });
  assert.deepEqual(windows, [{ rate: "2/SECOND", limit: 2, windowMs: 1000, most: 4 }]);
});

test("a factor multiplies a limit, which stays at least 1", () => {
  const enforcer = new LimitEnforcer([limit({ rates: "4/SECOND" })]);
  const at = (ms: number, factor: number) => enforcer.decide(requestTo("https://a.example/"), ms * 1000, factor).kind;
  assert.deepEqual([at(0, 0.5), at(0, 0.5), at(0, 0.5), at(0, 1)], ["admitted", "admitted", "rejected", "admitted"]);
  assert.equal(at(2000, 0.01), "admitted");
});

test("a client that ignores refusals for a minute is blocked, each time twice as long", () => {
  const enforcer = new LimitEnforcer([limit({ rates: "1/HOUR", firewall: { afterMs: 60_000, forMs: 3_600_000 } })]);
  assert.deepEqual(kinds(enforcer, [0, 1000, 30_000, 61_000, 62_000]), [
    "admitted",
    "rejected",
    "rejected",
    "rejected",
    "blocked",
  ]);
  const hourMs = 3_600_000;
  assert.deepEqual(kinds(enforcer, [61_000 + hourMs]), ["admitted"]);
  assert.deepEqual(kinds(enforcer, [61_001 + hourMs, 121_001 + hourMs, 121_000 + 3 * hourMs]), [
    "rejected",
    "rejected",
    "blocked",
  ]);
});

test("Crossref chooses and announces the pool by email address and kind of request", () => {
  const enforcer = new LimitEnforcer(LIMITS);
  const pool = (url: string, headers: SimulatedRequest["headers"] = {}) => {
    const decision = enforcer.decide(requestTo(url, { headers }), 0);
    assert.ok(decision.kind === "admitted");
    return [
      decision.headers["x-api-pool"],
      decision.headers["x-rate-limit-limit"],
      decision.headers["x-concurrency-limit"],
    ];
  };
  const works = "https://api.crossref.org/works";
  assert.deepEqual(pool(`${works}/10.5555/a`), ["public-single", "5", "1"]);
  assert.deepEqual(pool(works), ["public-array", "1", "1"]);
  assert.deepEqual(pool(`${works}/10.5555/a?mailto=me@example.org`), ["polite-single", "10", "3"]);
  assert.deepEqual(pool(works, { "user-agent": "x (mailto:me@example.org)" }), ["polite-array", "3", "3"]);
});

test("OpenAlex counts credits until midnight UTC and announces them in every response", () => {
  const enforcer = new LimitEnforcer(LIMITS);
  const wallMs = Date.UTC(2026, 10, 16, 23, 59, 0);
  const search = requestTo("https://api.openalex.org/works?search=reed", { wallMs });
  let nowUs = 0;
  const next = (of: SimulatedRequest) => {
    nowUs += 1_000_000;
    return enforcer.decide(of, nowUs);
  };
  const first = next(search);
  assert.ok(first.kind === "admitted");
  assert.deepEqual(
    [
      first.headers["x-ratelimit-remaining"],
      first.headers["x-ratelimit-credits-used"],
      first.headers["x-ratelimit-reset"],
    ],
    ["990", "10", "60"],
  );
  for (let count = 1; count < 100; count += 1) assert.equal(next(search).kind, "admitted");
  const refused = next(search);
  assert.ok(refused.kind === "rejected");
  assert.deepEqual([refused.reply.status, refused.reply.headers["retry-after"]], [429, "60"]);
  assert.equal(next({ ...search, wallMs: wallMs + 60_000 }).kind, "admitted");
});

test("arXiv counts all its hosts together and permits one concurrent request", () => {
  const enforcer = new LimitEnforcer(LIMITS);
  const first = enforcer.decide(requestTo("https://export.arxiv.org/api/query"), 0);
  assert.ok(first.kind === "admitted");
  assert.equal(enforcer.decide(requestTo("https://arxiv.org/pdf/1"), 2_999_999).kind, "rejected");
  assert.equal(enforcer.decide(requestTo("https://arxiv.org/pdf/1"), 3_000_000).kind, "rejected");
  first.release();
  assert.equal(enforcer.decide(requestTo("https://arxiv.org/pdf/1"), 3_000_000).kind, "admitted");
});

test("Zenodo limits searches separately and sends Retry-After with every response", () => {
  const enforcer = new LimitEnforcer(LIMITS);
  const wallMs = 1_800_000_000_000;
  const search = requestTo("https://zenodo.org/api/records?q=x", { wallMs });
  for (let count = 0; count < 30; count += 1) assert.equal(enforcer.decide(search, 0).kind, "admitted");
  assert.equal(enforcer.decide(search, 0).kind, "rejected");
  const record = enforcer.decide(requestTo("https://zenodo.org/api/records/1", { wallMs }), 0);
  assert.ok(record.kind === "admitted");
  assert.deepEqual(
    [record.headers["x-ratelimit-remaining"], record.headers["x-ratelimit-reset"], record.headers["retry-after"]],
    ["29", "1800000060", "60"],
  );
});
