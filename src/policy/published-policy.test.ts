import assert from "node:assert/strict";
import { test } from "node:test";
import { explainPolicy, explainSettings } from "./explanation.ts";
import { loadPolicy } from "./load.ts";
import { loadPublishedPolicy, publishedPolicyOf } from "./published-policy.ts";
import { ROLES } from "./roles.ts";

const HOSTS = ["api.crossref.org", "export.arxiv.org", "eutils.ncbi.nlm.nih.gov", "api.x", "unlisted.example"];

test("a published policy gives every host the same values from the same sources", async () => {
  const policy = await loadPolicy({
    env: {
      DOCSTOKG_RLIMITS: "api.x:metadata=rates:3/SECOND",
      NCBI_API_KEY: "secret-key",
      DOCSTOKG_MAILTO: "a@example.org",
    },
    breakers: { hosts: { "api.x": { fail_max: 2, mode: "shadow" } } },
  });
  const published = publishedPolicyOf(policy);
  assert.ok(published !== undefined);
  const text = JSON.stringify(published);
  const loaded = loadPublishedPolicy(JSON.parse(text));
  assert.ok(loaded !== undefined);
  const withoutNotes = (value: unknown) =>
    JSON.parse(JSON.stringify(value, (key, held) => (key === "note" ? undefined : held)));
  for (const host of HOSTS)
    for (const role of ROLES)
      assert.deepEqual(
        withoutNotes(explainPolicy(loaded, host, role)),
        withoutNotes(explainPolicy(policy, host, role)),
      );
  assert.equal(loaded.breakers.resolved.isShadow("api.x"), true);
  for (const secret of ["secret-key", "a@example.org"]) assert.ok(!text.includes(secret), secret);
});

test("a published policy has the same tiers, also at hosts that remove a key of their service", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      services: { institute: { members: ["*.institute.example"], with: { A_KEY: { total: { rates: "9/SECOND" } } } } },
    },
    identities: {
      services: { institute: { headers: { "x-key": "{A_KEY}" } } },
      hosts: { "b.institute.example": false, "c.institute.example": { headers: { "x-key": null } } },
    },
    env: { A_KEY: "secret-key" },
  });
  const loaded = loadPublishedPolicy(JSON.parse(JSON.stringify(publishedPolicyOf(policy))));
  for (const { ratelimits } of [policy, loaded ?? assert.fail("no policy")])
    assert.deepEqual(
      ["a", "b", "c"].map(host => ratelimits.resolved.route(`${host}.institute.example`, "metadata").name),
      ["service institute with A_KEY", "service institute", "service institute"],
    );
});

test("the address of a store is not published, but what happens while it is away is", async () => {
  const policy = await loadPolicy({
    env: { DOCSTOKG_RLIMIT_BACKEND: "redis", DOCSTOKG_RLIMIT_DSN: "redis://me:secret@host.example:6379" },
    ratelimits: { backend: { when_store_away: "wait" } },
    breakers: { advanced: { cooldown_store: { backend: "redis", dsn: "redis://me:secret@host.example:6379" } } },
  });
  const text = JSON.stringify(publishedPolicyOf(policy));
  assert.doesNotMatch(text, /secret|host\.example/);
  const settings = explainSettings(loadPublishedPolicy(JSON.parse(text)) ?? assert.fail("no policy"));
  assert.equal(settings.find(({ field }) => field === "backend.when_store_away")?.value, "wait");
});

test("a policy of thousands of hosts is not published", async () => {
  const hosts = Object.fromEntries(
    Array.from({ length: 5000 }, (_, n) => [`host-${n}.example`, { metadata: { rates: "1/SECOND" } }]),
  );
  assert.equal(publishedPolicyOf(await loadPolicy({ ratelimits: { hosts } })), undefined);
});

test("a published policy that this version cannot read is no policy", () => {
  const field = [["hosts", "a.example", "metadata", "rates"], "seven per fortnight", "x.yaml:1"] as const;
  assert.equal(loadPublishedPolicy({ ratelimits: [field], breakers: [], identities: [] }), undefined);
  assert.equal(loadPublishedPolicy({} as never), undefined);
});
