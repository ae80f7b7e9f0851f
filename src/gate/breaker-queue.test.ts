import assert from "node:assert/strict";
import { test } from "node:test";
import { host, plain } from "../../test/breaker/kit.ts";
import { BreakerRegistry } from "../breaker/breaker-registry.ts";
import { outcomeOfResponse } from "../core/breaker/classify.ts";
import type { Grant } from "../limiter/grant.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

test("a change of a breaker without waiting calls causes no warning", async () => {
  const warnings: Error[] = [];
  const record = (warning: Error) => warnings.push(warning);
  process.on("warning", record);
  const time = new FakeTime();
  const breakers = new BreakerRegistry(plain, { time });
  const gate = new Gate(limitPoliciesFrom({}, "test"), time, { breakers });
  const grant = gate.enter({ host, role: "metadata" }) as Grant;
  grant.report({ outcome: outcomeOfResponse({ status: 503 }), status: 503 });
  grant.release();
  breakers.close(host);
  await new Promise(resolve => setImmediate(resolve));
  process.off("warning", record);
  assert.deepEqual(warnings, []);
});
