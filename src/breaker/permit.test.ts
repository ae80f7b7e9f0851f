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
