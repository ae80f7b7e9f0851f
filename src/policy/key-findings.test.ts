import assert from "node:assert/strict";
import { test } from "node:test";
import type { Identities } from "./identity.ts";
import { keyFindings } from "./key-findings.ts";
import { type LoadedPolicy, loadPolicy } from "./load.ts";

const names = (count: number) => Array.from({ length: count }, (_, index) => `KEY_${index}`);

/** A host and a service of three members, each with a tier for each of these keys; every second key is sent, if it is set. */
async function policyWith(count: number, env: Record<string, string> = {}) {
  const tiers = Object.fromEntries(names(count).map(key => [key, { metadata: { rates: "9/SECOND" } }]));
  const entry = { metadata: { rates: "1/SECOND" }, with: tiers };
  const fields = names(count).flatMap((key, index) => (index % 2 === 0 ? [[`x-${index}`, `{${key}}`]] : []));
  return loadPolicy({
    env,
    ratelimits: {
      extends: "none",
      hosts: { "a.example": entry },
      services: { s: { ...entry, members: ["b.example", "c.example", "*.d.example"] } },
    },
    identities: {
      extends: "none",
      hosts: {
        "a.example": { headers: Object.fromEntries(fields) },
        "c.example": { headers: Object.fromEntries(fields) },
      },
    },
  });
}

/** The policy with identities that count how often a host is looked up. */
function counted(policy: LoadedPolicy) {
  let lookups = 0;
  const { identities } = policy;
  const counting = {
    sentTo: (...asked: Parameters<Identities["sentTo"]>) => {
      lookups += 1;
      return identities.sentTo(...asked);
    },
    wantedBy: (...asked: Parameters<Identities["wantedBy"]>) => {
      lookups += 1;
      return identities.wantedBy(...asked);
    },
  };
  return { policy: { ...policy, identities: counting as never }, lookups: () => lookups };
}

test("a tier is unused if no identity wants its key, and a gain if the key is not set", async () => {
  const found = keyFindings(await policyWith(4, { KEY_0: "the-first-key" })).map(({ rule, message }) => [
    rule,
    message.replace(/:.* with (KEY_\d) never.*|: (KEY_\d) is not.*/, " $1$2"),
  ]);
  assert.deepEqual(found, [
    ["unused-tier", "a.example KEY_1"],
    ["unused-tier", "a.example KEY_3"],
    ["unused-tier", "service s KEY_1"],
    ["unused-tier", "service s KEY_3"],
    ["key-gain", "a.example KEY_2"],
    ["key-gain", "service s KEY_2"],
  ]);
});

test("the number of lookups of hosts does not grow with the number of tiers", async () => {
  const lookups = [];
  for (const count of [2, 200]) {
    const asked = counted(await policyWith(count));
    assert.equal(keyFindings(asked.policy).length, 2 * count);
    lookups.push(asked.lookups());
  }
  assert.equal(lookups[1], lookups[0]);
});
