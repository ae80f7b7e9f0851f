import assert from "node:assert/strict";
import { test } from "node:test";
import { identityChanges } from "./identity-changes.ts";
import type { IdentitiesOptions } from "./identity-options.ts";
import { loadIdentities } from "./load-identities.ts";

const load = (identities: IdentitiesOptions, env: Record<string, string> = {}) =>
  loadIdentities({ identities: { extends: "none", ...identities }, env });

async function changes(before: IdentitiesOptions, after: IdentitiesOptions): Promise<readonly string[]> {
  const found = identityChanges(await load(before), await load(after));
  return found.map(({ setting, old, new: now }) => `${setting}: ${old} -> ${now}`);
}

test("a field that is added, changed or taken out is a change, and its value is not shown", async () => {
  const keyed = (key: string) => ({ hosts: { "a.example": { query: { key } } } });
  const setting = "identities.hosts.a.example.query.key";
  assert.deepEqual(await changes({}, keyed("one")), [`${setting}: undefined -> (not shown)`]);
  assert.deepEqual(await changes(keyed("one"), keyed("two")), [`${setting}: (not shown) -> (not shown)`]);
  assert.deepEqual(await changes(keyed("two"), { hosts: { "a.example": {} } }), [
    `${setting}: (not shown) -> undefined`,
  ]);
  assert.deepEqual(await changes(keyed("two"), keyed("two")), []);
});

test("a field or host that gets nothing of its service any more is a change", async () => {
  const without = { hosts: { "a.example": { query: { mailto: null } } } };
  assert.deepEqual(await changes({}, without), ["identities.hosts.a.example.query.mailto: undefined -> not sent"]);
  assert.deepEqual(await changes({ hosts: { "a.example": {} } }, { hosts: { "a.example": null } }), [
    "identities.hosts.a.example: undefined -> removed",
  ]);
});

test("a path is shown, because it is no secret", async () => {
  const below = (path: string) => ({ hosts: { "a.example": { path } } });
  assert.deepEqual(await changes(below("/v1"), below("/v2")), ["identities.hosts.a.example.path: /v1 -> /v2"]);
  assert.deepEqual(await changes(below("/v1"), below("/")), ["identities.hosts.a.example.path: /v1 -> undefined"]);
});

test("a key that has got a value is sent now", async () => {
  const identities = { hosts: { "a.example": { headers: { "X-Key": "{API_KEY}" } } } };
  const [only, ...others] = identityChanges(await load(identities), await load(identities, { API_KEY: "k-1" }));
  assert.deepEqual(only, {
    setting: "identities.hosts.a.example.headers.x-key",
    old: "not sent",
    new: "(not shown)",
    source: "identities",
  });
  assert.deepEqual(others, []);
});
