import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { only, serve, until } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { type Constraint, type OpenReason, RejectedError } from "../errors.ts";
import { createHub } from "../http/create-hub.ts";
import type { HubEvent } from "../http/hub-options.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import { summarize } from "../telemetry/summary/run-tally.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { shareOf } from "./limits-share.ts";
import { loadPolicy } from "./load.ts";
import { decidedByOf } from "./provenance.ts";

const request = { host: "api.x", role: "metadata" } as const;
const windowOf = (limit: string, owner = "api.x"): Constraint => ({ kind: "window", owner, limit });
const circuit = (reason: OpenReason, owner = "api.x"): Constraint => ({
  kind: "breaker",
  owner,
  limit: `open circuit (${reason})`,
});

test("a limit names the line of the file, the variable or the flag that set it", async () => {
  const folder = temporaryFolder("provenance");
  const file = join(folder, "ratelimits.yaml");
  await writeFile(
    file,
    "hosts:\n  api.x:\n    metadata:\n      rates: [10/second, 300/min]\n      max_concurrent: 3\n",
  );
  const fromFile = await loadPolicy({ ratelimits: file });
  assert.deepEqual(decidedByOf(fromFile, windowOf("10/SECOND"), request), {
    limit: "10/SECOND",
    value: ["10/second", "300/min"],
    where: `${file}:4`,
    mode: "enforce",
  });
  const slots = decidedByOf(fromFile, { kind: "concurrency", owner: "api.x", limit: "max_concurrent 3" }, request);
  assert.deepEqual([slots.value, slots.where], [3, `${file}:5`]);
  const shared = decidedByOf(fromFile, windowOf("10/SECOND+300/MINUTE (shared by all processes)"), request);
  assert.equal(shared.where, `${file}:4`);

  const fromVariable = await loadPolicy({ env: { DOCSTOKG_RLIMITS: "api.x:metadata=rates:3/SECOND" } });
  assert.equal(decidedByOf(fromVariable, windowOf("3/SECOND"), request).where, "DOCSTOKG_RLIMITS");
  const fromFlag = await loadPolicy({ overrides: { rate: ["api.x:metadata=rates:3/SECOND"] } });
  assert.equal(decidedByOf(fromFlag, windowOf("3/SECOND"), request).where, "--rate");
});

test("a rate names its setting however it is written there, and while the store is away", async () => {
  for (const [written, limit] of [
    ["1000/s", "1000/SECOND"],
    ["300/min", "300/MINUTE"],
    ["1/60sec", "1/MINUTE"],
    [" 5/Hours ", "5/HOUR"],
    ["2/s+90/minutes", "90/MINUTE"],
    ["7/s", "even spacing of 7/SECOND"],
  ] as const) {
    const policy = await loadPolicy({ ratelimits: { hosts: { "api.x": { metadata: { rates: written } } } } });
    const { value, where } = decidedByOf(policy, windowOf(limit), request);
    assert.deepEqual([value, where], [written, "policy.ratelimits"], written);
  }
  const policy = await loadPolicy({ env: { DOCSTOKG_WHEN_STORE_AWAY: "share" } });
  const [divided] = shareOf(policy.ratelimits.resolved, 2).route("api.x", "metadata").roleBudget.labels;
  const { value, where } = decidedByOf(policy, windowOf(divided ?? ""), request);
  assert.deepEqual([value, where], ["when_store_away share", "DOCSTOKG_WHEN_STORE_AWAY"]);
});

test("the total of a service is named as such, if the role of its host has the same number", async () => {
  const policy = await loadPolicy({
    ratelimits: { services: { s: { members: ["api.x"], total: { rates: "5/s" } } } },
    overrides: { rate: ["api.x:metadata=5/s"] },
  });
  const sourceOf = (owner: string) => decidedByOf(policy, windowOf("5/SECOND", owner), request).where;
  assert.deepEqual([sourceOf("api.x"), sourceOf("service s")], ["--rate", "policy.ratelimits"]);
});

test("the budget of a service for one host names the setting of the service or of the host", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      services: { free: { per_host: true, metadata: { rates: "1/MINUTE" } } },
      hosts: { "api.x": { metadata: { rates: "7/SECOND" }, total: { rates: "9/SECOND" } } },
    },
  });
  for (const name of ["service free:api.x", "service free:api.x/path", "service free:api.x:8080"])
    for (const limit of ["1/MINUTE", "7/SECOND", "9/SECOND"]) {
      const { where } = decidedByOf(policy, windowOf(limit, name), { host: name, role: "metadata" });
      assert.equal(where, "policy.ratelimits", `${limit} of ${name}`);
    }
});

test("a limit of another unit names the setting of its role or total", async () => {
  const metadata = { rates: "5/DAY", costs: { credits: ["5/DAY", "9/HOUR"] } };
  const hosts = { "api.x": { metadata, total: { costs: { usd_micros: "5/DAY" } } } };
  const policy = await loadPolicy({ ratelimits: { hosts }, overrides: { rate: ["api.x:total=costs.tokens:7/DAY"] } });
  const decided = (limit: string) => {
    const { value, where } = decidedByOf(policy, windowOf(limit), request);
    return [value, where];
  };
  assert.deepEqual(decided("credits 9/HOUR"), [["5/DAY", "9/HOUR"], "policy.ratelimits"]);
  assert.deepEqual(decided("credits 5/DAY+credits 9/HOUR (shared by all processes)")[1], "policy.ratelimits");
  assert.deepEqual(decided("usd_micros 5/DAY"), ["5/DAY", "policy.ratelimits"]);
  assert.deepEqual(decided("tokens 7/DAY"), ["7/DAY", "--rate"]);
});

test("a limit that the server announced names the header fields and the time", async () => {
  const learnedFrom = { source: "X-RateLimit", wallMs: Date.UTC(2026, 0, 2) };
  const { where } = decidedByOf(await loadPolicy(), windowOf("2/SECOND"), request, { learnedFrom });
  assert.equal(where, "learned from X-RateLimit at 2026-01-02T00:00:00.000Z");
});

test("a limit that an operator has ordered names the operator and the reason, and the other limits their setting", async () => {
  const order = { rates: "2/SECOND+50/MINUTE", reason: "quota", by: "ann@ops" };
  const policy = await loadPolicy({
    ratelimits: { hosts: { "api.x": { metadata: { rates: "10/SECOND+500/HOUR" } } } },
  });
  const decided = (limit: string) => decidedByOf(policy, windowOf(limit), request, { order });
  for (const limit of ["2/SECOND", "50/MINUTE", "2/SECOND+50/MINUTE+500/HOUR (shared by all processes)"])
    assert.deepEqual(decided(limit), {
      ...{ limit, value: "2/SECOND+50/MINUTE", where: "an operator's order: quota (ann@ops)", mode: "enforce" },
    });
  assert.equal(decided("500/HOUR").where, "policy.ratelimits");
});

test("the limits of a service have the mode of the policy", async () => {
  for (const mode of ["shadow", "enforce"] as const) {
    const services = { papers: { members: ["a.x"], metadata: { rates: "1/SECOND" } }, each: { per_host: true } };
    const policy = await loadPolicy({ env: {}, ratelimits: { mode, services } });
    for (const host of ["service papers", "service each:b.x", "a.x"])
      assert.equal(decidedByOf(policy, windowOf("1/SECOND", host), { host, role: "metadata" }).mode, mode, host);
  }
});

test("a circuit names its fail_max, the server or the operator", async () => {
  const policy = await loadPolicy({
    env: { DOCSTOKG_BREAKERS: "api.x=fail_max:7" },
    breakers: { mode: "shadow", resolvers: { index: { fail_max: 2 } } },
  });
  assert.deepEqual(decidedByOf(policy, circuit("failures"), request), {
    circuit: "api.x",
    value: "fail_max 7",
    where: "DOCSTOKG_BREAKERS",
    mode: "shadow",
  });
  assert.equal(decidedByOf(policy, circuit("failures", "resolver index"), request).value, "fail_max 2");
  assert.equal(decidedByOf(policy, circuit("retry-after"), request).where, "Retry-After of the server");
  assert.equal(decidedByOf(policy, circuit("cli-open:pause"), request).where, "an operator's order");
  assert.match(decidedByOf(policy, circuit("rolling-window"), request).where, /^breakers\.yaml \(shipped\):\d+$/);
});

test("the circuit of a service names the setting of the service, also for a request that names only the service", async () => {
  const policy = await loadPolicy({
    env: {},
    ratelimits: { services: { papers: { members: ["a.x"] }, each: { per_host: true } } },
    breakers: { services: { papers: { fail_max: 9 } }, hosts: { "b.x": { fail_max: 8 } } },
  });
  const decided = (host: string, owner: string) => {
    const { value, where } = decidedByOf(policy, circuit("failures", owner), { host, role: "metadata" });
    return [value, where];
  };
  for (const host of ["service papers", "service papers with key", "a.x"])
    assert.deepEqual(decided(host, "service papers"), ["fail_max 9", "policy.breakers"], host);
  assert.deepEqual(decided("service each:b.x", "b.x"), ["fail_max 8", "policy.breakers"]);
});

test("a wait for trial calls, for slow calls or for a store that is away names its own setting", async () => {
  const policy = await loadPolicy({
    ratelimits: { backend: { when_store_away: "wait" } },
    breakers: { advanced: { rolling_window: { slow_call_ms: 900 } } },
    env: {},
  });
  const decided = (kind: Constraint["kind"], limit: string) => {
    const { value, where } = decidedByOf(policy, { kind, owner: "api.x", limit }, request);
    return [value, where];
  };
  assert.deepEqual(decided("breaker", "probe in flight")[0], "trial_calls 1");
  assert.deepEqual(decided("breaker", "ramp-up after a cooldown (2 in flight)")[0], "trial_calls 1");
  assert.deepEqual(decided("breaker", "open circuit (slow-calls)"), ["slow_call_ms 900", "policy.breakers"]);
  assert.deepEqual(decided("store", "when_store_away"), ["when_store_away wait", "policy.ratelimits"]);
});

test("every refusal of a hub carries the setting behind it", async t => {
  const { origin } = await serve(t, (_, response) => response.end());
  const hub = await createHub({
    env: { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1/HOUR" },
    cache: false,
    retry: false,
  });
  t.after(() => hub.close());
  const refusal = async (maxWaitMs: number) => {
    const error = await hub.fetch(origin, { maxWaitMs }).catch(reason => reason);
    assert.ok(error instanceof RejectedError, String(error));
    return error.decidedBy;
  };
  await (await hub.fetch(origin)).text();
  for (const maxWaitMs of [0, 10])
    assert.deepEqual(await refusal(maxWaitMs), {
      limit: "1/HOUR",
      value: "1/HOUR",
      where: "DOCSTOKG_RLIMITS",
      mode: "enforce",
    });
  hub.breakers.open("127.0.0.1", { seconds: 60, reason: "pause" });
  assert.deepEqual(await refusal(0), {
    circuit: "127.0.0.1",
    value: "open circuit (cli-open:pause)",
    where: "an operator's order",
    mode: "enforce",
  });
});

test("a limit of requests with a key names the setting under with", async () => {
  const ratelimits = {
    extends: "none" as const,
    hosts: { "api.x": { metadata: { rates: "2/SECOND" }, with: { A_KEY: { metadata: { rates: "9/SECOND" } } } } },
    services: {
      s: { members: ["s.x"], total: { rates: "1/SECOND" }, with: { A_KEY: { total: { rates: "8/SECOND" } } } },
      own: { per_host: true, metadata: { rates: "7/SECOND" } },
    },
  };
  const identities = {
    hosts: { "api.x": { path: "/v2", headers: { "x-key": "{A_KEY}" } }, "s.x": { headers: { "x-key": "{A_KEY}" } } },
  };
  const policy = await loadPolicy({ ratelimits, identities, env: { A_KEY: "secret" } });
  for (const [host, owner, limit] of [
    ["api.x", "api.x", "2/SECOND"],
    ["api.x with A_KEY", "api.x with A_KEY", "9/SECOND"],
    ["service s with A_KEY", "service s with A_KEY", "8/SECOND"],
    ["service own:api.x with A_KEY", "service own:api.x with A_KEY", "9/SECOND"],
    ["service own:api.x with A_KEY", "service own:api.x with A_KEY", "7/SECOND"],
  ] as const)
    assert.deepEqual(decidedByOf(policy, windowOf(limit, owner), { host, role: "metadata" }), {
      limit,
      value: limit,
      where: "policy.ratelimits",
      mode: "enforce",
    });
});

test("the mode of a circuit behind a service with per_host is that of the host", async () => {
  const policy = await loadPolicy({
    ratelimits: { services: { own: { per_host: true, metadata: { rates: "7/SECOND" } } } },
    breakers: { hosts: { "api.x": { mode: "shadow" } } },
  });
  const modeAt = (host: string) => decidedByOf(policy, circuit("failures"), { host, role: "metadata" }).mode;
  assert.deepEqual(["service own:api.x", "service own:other.x", "api.x"].map(modeAt), ["shadow", "enforce", "shadow"]);
});

test("the events of refusals and of shadow mode name the setting behind them", async t => {
  const { origin } = await serve(t, (_, response) => response.end());
  const decidedBy = async (mode: "enforce" | "shadow") => {
    const found: Record<string, string | undefined> = {};
    const hub = await createHub({
      env: { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1/HOUR" },
      policy: { ratelimits: { mode }, breakers: { mode } },
      cache: false,
      retry: false,
      telemetry: [
        event => {
          if ("decided_by" in event) found[event.event_type] = event.decided_by;
        },
      ],
    });
    t.after(() => hub.close());
    await (await hub.fetch(origin)).text();
    await hub.fetch(origin, { maxWaitMs: 0 }).then(
      response => response.text(),
      () => undefined,
    );
    hub.breakers.open("127.0.0.1", { seconds: 60, reason: "pause" });
    if (mode === "shadow") await (await hub.fetch(origin)).text();
    return found;
  };
  assert.deepEqual(await decidedBy("enforce"), { http_request: "1/HOUR (DOCSTOKG_RLIMITS)" });
  assert.deepEqual(await decidedBy("shadow"), {
    "ratelimit.shadow": "1/HOUR (DOCSTOKG_RLIMITS)",
    breaker_shadow: "open circuit (cli-open:pause) (an operator's order)",
  });
});

test("a call that waited names the setting that it waited for, in its events and in the report", async t => {
  const time = new FakeTime();
  const { origin } = await serve(t, (_, response) => response.end());
  const events: HubEvent[] = [];
  const hub = await createHub({
    env: { DOCSTOKG_RLIMITS: "127.0.0.1:metadata=rates:1/SECOND" },
    policy: { breakers: { advanced: { ramp_up: { enabled: false } } } },
    time,
    cache: false,
    retry: false,
    telemetry: [event => events.push(event)],
  });
  t.after(() => hub.close());
  const call = async () => (await hub.fetch(origin, { maxWaitMs: 60_000 })).text();
  await call();
  const forRate = call();
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(2000);
  await forRate;
  hub.breakers.open("127.0.0.1", { seconds: 30, reason: "pause" });
  const forCircuit = call();
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(30_000);
  await forCircuit;
  const rate = "1/SECOND (DOCSTOKG_RLIMITS)";
  const order = "open circuit (cli-open:pause) (an operator's order)";
  for (const type of ["ratelimit.acquire", "http_attempt", "http_request"] as const)
    assert.deepEqual(
      only(events, type).map(event => event.decided_by),
      [undefined, rate, order],
      type,
    );
  const stamped = events.map(event => ({ ts: 0, run_id: "r", config_hash: "", ...event }));
  const { decisions } = await summarize(stamped as unknown as TelemetryEvent[], "r");
  const [first, second] = only(events, "http_attempt").slice(1);
  assert.deepEqual(decisions, [
    { decidedBy: order, waits: 1, waitMs: second?.breaker_wait_ms, refusals: 0 },
    { decidedBy: rate, waits: 1, waitMs: first?.rate_wait_ms, refusals: 0 },
  ]);
});
