import assert from "node:assert/strict";
import { test } from "node:test";
import { lintPolicy } from "./lint.ts";
import { loadPolicy, type PolicySources } from "./load.ts";

const ONE = { metadata: { rates: "1/s" } };

async function similarHosts(sources: PolicySources): Promise<readonly string[]> {
  const findings = lintPolicy(await loadPolicy(sources)).filter(({ rule }) => rule === "similar-host");
  assert.ok(findings.every(({ severity }) => severity === "warning"));
  return findings.map(({ message }) => message);
}

test("a host that is nearly a shipped one is reported, wherever it is written", async () => {
  const found = await similarHosts({
    ratelimits: {
      hosts: { "api.corssref.org": ONE, "api.example.org": ONE },
      services: { arxiv: { members: ["exprot.arxiv.org"] } },
    },
    breakers: { hosts: { "zenod.org": { fail_max: 3 } } },
    env: { DOCSTOKG_RLIMITS: "api.opealex.org:metadata=1/s" },
    overrides: { rate: ["api.crosref.org:8080:metadata=rates:1/s"] },
  });
  assert.deepEqual(found.toSorted(), [
    "--rate: hosts.api.crosref.org:8080: api.crosref.org is a new host of your policy; did you mean api.crossref.org?",
    "DOCSTOKG_RLIMITS: hosts.api.opealex.org: api.opealex.org is a new host of your policy; did you mean api.openalex.org?",
    "policy.breakers: hosts.zenod.org: zenod.org is a new host of your policy; did you mean zenodo.org?",
    "policy.ratelimits: hosts.api.corssref.org: api.corssref.org is a new host of your policy; did you mean api.crossref.org?",
    "policy.ratelimits: services.arxiv.members: exprot.arxiv.org is a new host of your policy; did you mean export.arxiv.org?",
  ]);
});

test("an override that is nearly a host of the user's file is reported; the hosts of the file itself are not compared", async () => {
  const ratelimits = { hosts: { "api.mycorp.example": ONE, "apis.mycorp.example": ONE } };
  assert.deepEqual(await similarHosts({ ratelimits }), []);
  assert.deepEqual(await similarHosts({ ratelimits, overrides: { rate: ["api.mycorp.example:metadata=2/s"] } }), []);
  assert.deepEqual(await similarHosts({ ratelimits, overrides: { rate: ["api.mycrop.example:metadata=2/s"] } }), [
    "--rate: hosts.api.mycrop.example: api.mycrop.example is a new host of your policy; did you mean api.mycorp.example?",
  ]);
});

test("a host below a shipped suffix, another number, and a policy that stands alone are not reported", async () => {
  const hosts = { "inria.hal.science": ONE, "api2.crossref.org": ONE, "crossref.org:8080": ONE };
  assert.deepEqual(await similarHosts({ ratelimits: { hosts } }), []);
  assert.deepEqual(await similarHosts({ ratelimits: { extends: "none", hosts: { "api.corssref.org": ONE } } }), []);
});

test("of thirty thousand similar hosts, twenty are reported", async () => {
  const hosts = Object.fromEntries(
    Array.from({ length: 30_000 }, (_, index) => {
      const letters = [...index.toString(26).padStart(4, "0")].map(digit => Number.parseInt(digit, 26) + 97);
      const [a = 97, b = 97, c = 97, d = 97] = letters;
      return [`${String.fromCharCode(a, b)}i.${String.fromCharCode(c, d)}ossref.org`, ONE];
    }),
  );
  assert.ok((await similarHosts({ ratelimits: { hosts } })).length <= 20);
});
