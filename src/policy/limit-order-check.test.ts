import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates } from "../core/limits/rate.ts";
import { checkWithinPolicy, limitTargetsOf, looserRoles } from "./limit-order-check.ts";
import { loadPolicy } from "./load.ts";
import type { LimitPart } from "./roles.ts";

const ratelimits = {
  extends: "none" as const,
  services: {
    s: { members: ["a.example"], total: { rates: "3/SECOND" }, with: { A_KEY: { total: { rates: "10/SECOND" } } } },
  },
  hosts: {
    "b.example": { metadata: { rates: "3/SECOND" }, with: { A_KEY: { metadata: { rates: "10/SECOND" } } } },
  },
};
const headers = { "x-key": "{A_KEY}" };

async function check(unit: string, role: LimitPart, rate: string, path = "/") {
  const policy = await loadPolicy({
    ratelimits,
    identities: { services: { s: { headers } }, hosts: { "b.example": { path, headers } } },
    env: { A_KEY: "secret" },
  });
  const targets = limitTargetsOf(policy, { unit, role });
  const wanted = { rates: parseRates(rate) };
  return {
    kept: () => checkWithinPolicy(policy, targets, wanted, "use force"),
    looser: looserRoles(policy, targets, wanted).map(({ configured }) => configured),
  };
}

test("an order is compared with the limits of the keys that the requests carry", async () => {
  for (const [unit, role] of [
    ["service s", "total"],
    ["a.example", "total"],
    ["b.example", "metadata"],
  ] as const) {
    const within = await check(unit, role, "5/SECOND");
    assert.deepEqual(within.kept(), []);
    assert.deepEqual(within.looser, ["3/SECOND"], "requests over http carry no key");
    const above = await check(unit, role, "20/SECOND");
    assert.throws(above.kept, /^RangeError: 20\/SECOND is looser than 10\/SECOND of (service s|b\.example) \(/);
    assert.deepEqual(above.looser, ["10/SECOND"]);
  }
});

test("an order that is looser than the limits of some requests only is accepted, and with force it is reported", async () => {
  const { kept, looser } = await check("b.example", "metadata", "5/SECOND", "/v2");
  assert.deepEqual(kept(), []);
  assert.deepEqual(looser, ["3/SECOND"]);
});
