import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy, type PolicySources } from "../../policy/load.ts";
import { compactPolicy, policyWarnings } from "./policy-table.ts";

const policy = await loadPolicy({ env: {} });

test("the policy at the start of a run has one line per host, with max delay and HEAD counting", () => {
  const text = compactPolicy(policy);
  assert.match(text, /^backend memory, AIMD off, at most 500 requests in flight\n\n/);
  assert.match(
    text,
    /^host +metadata +landing +artifact +total +max delay +HEAD +concurrent +failures \/ reset \(metadata\)$/m,
  );
  assert.match(text, /^service arxiv +1\/3SECOND .* 10000 ms +counted +1 +\d+ \/ \d+ s$/m);
  assert.match(text, /^\(all other hosts\) .* 200 ms \/ 250 ms \/ 2000 ms +not counted +100 \/ 50 \/ 10 +5 \/ 45 s$/m);
  assert.equal(compactPolicy(policy, 1000), text);
});

test("the policy at the start of a run has every total of a host, with the service that it belongs to", async () => {
  const total = (rates: string) => ({ total: { rates } });
  const ratelimits = {
    services: { s: { members: ["a.example", "b.example"], ...total("9/SECOND") } },
    hosts: { "a.example": total("3/SECOND"), "b.example": { metadata: { max_delay_ms: 9 } } },
  };
  const text = compactPolicy(await loadPolicy({ env: {}, ratelimits: { extends: "none", ...ratelimits } }));
  assert.match(text, /^a\.example .* 3\/SECOND; 9\/SECOND \(service s\) /m);
  assert.match(text, /^b\.example .* 9\/SECOND \(service s\) /m);
  assert.match(text, /^service s .* 9\/SECOND /m);
});

test("on a narrow terminal the defaults are printed, and the command that prints every host", () => {
  for (const columns of [80, 40]) {
    const text = compactPolicy(policy, columns);
    const table = text.slice(text.indexOf("\n\n") + 2, text.indexOf("\nFor the limits of each host"));
    for (const line of table.split("\n")) assert.ok(line.length <= columns, line);
    assert.match(text, /200 ms/);
    assert.match(text, /not counted/);
    assert.match(text, /\nFor the limits of each host run: docstokg policy show\n\n$/);
  }
  assert.match(compactPolicy(policy, 40), /^defaults: metadata\nrates: 10\/SECOND \+ 5000\/HOUR\nmax delay: 200 ms\n/m);
});

test("a run starts with a warning for an override without effect and for a limit looser than the shipped one", async () => {
  assert.equal(policyWarnings(policy), "");
  const overrides = { rate: ["api.crossref.org:metadata=rates:90/SECOND"] };
  const text = policyWarnings(await loadPolicy({ env: {}, overrides }));
  assert.match(text, /^warning: api\.crossref\.org metadata: 90\/SECOND .* has no effect: .* \[role-above-total\]$/m);
  assert.match(text, /^warning: api\.crossref\.org .* \[looser-than-shipped\]$/m);
});

test("a run starts with a warning for limits that are not enforced, and for requests that no longer share a limit", async () => {
  const warningsOf = async (sources: PolicySources) => policyWarnings(await loadPolicy({ env: {}, ...sources }));
  assert.match(await warningsOf({ ratelimits: { mode: "shadow" } }), /^warning: .* only report, .* \[shadow-mode\]$/m);
  const rate = ["zenodo.org:80:metadata=rates:2/5SECOND"];
  assert.match(await warningsOf({ overrides: { rate } }), /^warning: zenodo\.org metadata: .* \[counted-apart\]$/m);
  const members = { replace: ["doi.org", "dx.doi.org"] };
  assert.match(
    await warningsOf({ ratelimits: { services: { doi: { members } } } }),
    /^warning: www\.doi\.org is no longer a member of service doi: .* \[orphaned-member\]$/m,
  );
});
