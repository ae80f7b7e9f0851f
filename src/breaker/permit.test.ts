import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";

const result = (status: number) => ({ outcome: outcomeOfResponse({ status }), status });

test("a permit ends once: a second report or release has no effect", () => {
  const { registry } = setUp();
  const failures = () => registry.state(host).roles[0]?.failures;
  const twice = registry.allow({ host });
  twice.report(result(503));
  twice.report(result(503));
  assert.equal(failures(), 1);
  const released = registry.allow({ host });
  released.release();
  released.report(result(503));
  assert.equal(failures(), 1);
});

test("a result whose outcome is a text, or missing, is an error of the caller, and the permit stays valid", () => {
  const { registry } = setUp();
  const permit = registry.allow({ host });
  for (const [wrong, found] of [
    [{ outcome: "success" }, '"success"'],
    [{ outcome: { kind: "ok" } }, '{"kind":"ok"}'],
    [{ kind: "success" }, "no outcome"],
    [undefined, "no outcome"],
  ] as const) {
    const message = `report: expected { outcome } with an outcome that classify returns, such as { kind: "success" }, got ${found}`;
    assert.throws(() => permit.report(wrong as never), { name: "TypeError", message });
  }
  assert.equal(registry.state(host).roles[0]?.failures, 0);
  permit.report(result(503));
  assert.equal(registry.state(host).roles[0]?.failures, 1);
});

test("an unknown role is an error, also if it is the name of a member of every object", () => {
  const { registry } = setUp();
  for (const role of ["pdf", "toString", "__proto__"]) {
    const message = `unknown role "${role}"; expected metadata, landing or artifact`;
    assert.throws(() => registry.allow({ host, role: role as "metadata" }), { name: "RangeError", message });
  }
});

test("a host is kept while one of its permits is neither reported nor released", () => {
  for (const end of [
    (permit: ReturnType<BreakerRegistry["allow"]>) => permit.report(result(200)),
    (permit: ReturnType<BreakerRegistry["allow"]>) => permit.release(),
  ]) {
    const { registry } = setUp();
    registry.allow({ host });
    const other = registry.allow({ host });
    end(other);
    other.release();
    for (let visit = 0; visit < 10; visit += 1) registry.allow({ host: `h${visit}.example` }).release();
    assert.ok([...registry.statuses()].some(status => status.host === host));
  }
});
