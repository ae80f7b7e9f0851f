import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";

const host = "www.example.org";
const HOUR = { rates: "4/HOUR", guard_ms: 0 };
const DEFAULTS: RatelimitsOptions = { defaults: { metadata: HOUR, landing: HOUR } };

function reload(gate: Gate, limits: RatelimitsOptions): void {
  gate.reload(limitPoliciesFrom({ ...DEFAULTS, ...limits }, "test"));
}

/** How many requests are granted at once. */
function burst(gate: Gate, entry: Partial<EntryRequest>): number {
  let granted = 0;
  while (gate.tryEnter({ host, role: "metadata", stamp: "granted", ...entry }) !== undefined) granted += 1;
  return granted;
}

const services = (...members: string[]): RatelimitsOptions => ({ services: { part: { members } } });

for (const [what, before] of [
  ["its host", {}],
  ["a listed host", { hosts: { [host]: { metadata: HOUR } } }],
  ["the service of its host", { services: { whole: { members: [host] } } }],
  ["a service that has its host by a suffix", { services: { whole: { members: ["*.example.org"] } } }],
  ["a longer path", { services: { whole: { members: [`${host}/a/b`] } } }],
] satisfies [string, RatelimitsOptions][])
  test(`a path that a reload splits off counts what was sent before by ${what}`, () => {
    const { gate, enterNow } = gateOf({ ...DEFAULTS, ...before });
    for (let call = 0; call < 3; call += 1) enterNow({ host, path: "/a/b/c" }).release();
    reload(gate, { ...before, services: { ...before.services, part: { members: [`${host}/a/b/c`] } } });
    assert.equal(burst(gate, { path: "/a/b/c" }), 1);
  });

test("a path that a reload splits off counts the requests of its host in flight", async () => {
  const { gate, time, enterNow } = gateOf({ defaults: { metadata: { ...HOUR, max_concurrent: 3 } } });
  const flying = [enterNow({ host, path: "/a" }), enterNow({ host, path: "/a" })];
  gate.reload(
    limitPoliciesFrom({ defaults: { metadata: { ...HOUR, max_concurrent: 3 } }, ...services(`${host}/a`) }, "test"),
  );
  const third = enterNow({ host, path: "/a" });
  assert.equal(burst(gate, { path: "/a" }), 0, "every slot is taken");
  await time.advance(1000);
  for (const grant of [...flying, third]) grant.release();
  assert.equal(burst(gate, { path: "/a" }), 1);
  await time.advance(3_599_000);
  assert.equal(burst(gate, { path: "/a" }), 0, "they count from their writes");
});

test("the total of a path that a reload splits off counts what its host has sent in every role", () => {
  const { gate, enterNow } = gateOf(DEFAULTS);
  for (const role of ["metadata", "landing"] as const) enterNow({ host, role, path: "/a" }).release();
  reload(gate, { services: { part: { members: [`${host}/a`], total: { rates: "3/HOUR", guard_ms: 0 } } } });
  assert.equal(burst(gate, { path: "/a" }), 1);
});

test("a path of a service with per_host that a reload splits off counts what was sent before", () => {
  const named = { ols: { per_host: true, metadata: HOUR } };
  const { gate, enterNow } = gateOf({ ...DEFAULTS, services: named });
  for (let call = 0; call < 3; call += 1) enterNow({ host, service: "ols", path: "/a" }).release();
  reload(gate, { services: { ...named, part: { members: [`${host}/a`] } } });
  assert.equal(burst(gate, { service: "ols", path: "/a" }), 1);
});

test("a path that a reload splits off in each partition counts what each partition has sent", () => {
  const metadata = { ...HOUR, per: "partition" as const };
  const { gate, enterNow } = gateOf({ hosts: { [host]: { metadata } } });
  for (let call = 0; call < 3; call += 1) enterNow({ host, path: "/a", partition: "one" }).release();
  reload(gate, { hosts: { [host]: { metadata } }, services: { part: { members: [`${host}/a`], metadata } } });
  assert.deepEqual(
    [burst(gate, { path: "/a", partition: "one" }), burst(gate, { path: "/a", partition: "two" })],
    [1, 4],
  );
});

test("a host that a reload names counts what was sent by the suffix that it belonged to", () => {
  const { gate, enterNow } = gateOf({ ...DEFAULTS, ...services("*.example.org") });
  for (let call = 0; call < 3; call += 1) enterNow({ host }).release();
  reload(gate, { ...services("*.example.org"), hosts: { [host]: { metadata: HOUR } } });
  assert.equal(burst(gate, {}), 1);
});

test("a service that takes over a suffix counts what the former service has sent", () => {
  const of = (whole: string[], part: string[]) => ({
    services: { whole: { members: whole }, part: { members: part } },
  });
  for (const [before, after] of [
    [of(["*.example.org"], ["b.example"]), of(["a.example"], ["b.example", "*.example.org"])],
    [of(["*.example.org"], ["b.example"]), of(["*.example.org"], ["b.example", "*.www.example.org"])],
    [of(["*.www.example.org"], ["b.example"]), of(["a.example"], ["b.example", "*.example.org"])],
  ] as const) {
    const entry = { host: "deep.www.example.org" };
    const { gate, enterNow } = gateOf({ ...DEFAULTS, ...before });
    for (let call = 0; call < 3; call += 1) enterNow(entry).release();
    reload(gate, after);
    assert.equal(burst(gate, entry), 1);
  }
});

test("a reload looks up no route of a forgotten host that only the defaults apply to", async () => {
  const looked = new Set<string>();
  const recording = (limits: LimitPolicies): LimitPolicies => ({
    aimd: limits.aimd,
    maxInFlight: limits.maxInFlight,
    route: (name, ...place) => limits.route(looked.add(name) && name, ...place),
    serviceRoute: (...request) => limits.serviceRoute(...request),
    hasPaths: name => limits.hasPaths(name),
    routeByName: (name, role) => limits.routeByName(looked.add(name) && name, role),
    placesOf: (name, role) => limits.placesOf(looked.add(name) && name, role),
    namedPlaces: () => limits.namedPlaces(),
    isNamed: name => limits.isNamed(name),
  });
  const options: RatelimitsOptions = { defaults: { metadata: { rates: "9/s" } }, ...services("a.example") };
  const limits = () => recording(limitPoliciesFrom(options, "test"));
  const time = new FakeTime();
  const gate = new Gate(limits(), time);
  for (const name of ["old.example", "a.example", "b.example", "c.example", "d.example"]) {
    assert.ok(gate.tryEnter({ host: name, role: "metadata", stamp: "granted" }));
    await time.advance(2000);
  }
  looked.clear();
  gate.reload(limits());
  assert.deepEqual([looked.has("old.example"), looked.has("d.example")], [false, true]);
});
