import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { ConfiguredLimits } from "./limits.ts";
import { lintPolicy } from "./lint.ts";
import { loadPolicy } from "./load.ts";
import type { RatelimitsOptions, RoleLimits, ServiceLimits } from "./ratelimit-options.ts";
import { ROLES } from "./roles.ts";

/** Requests of shipped services that share budgets, hosts or paths in every way that is shipped. */
const REQUESTS = [
  ["export.arxiv.org", "/api"],
  ["arxiv.org", "/pdf/1"],
  ["web.archive.org", "/cdx/search"],
  ["web.archive.org", "/web/1"],
  ["archive.org", "/wayback/available"],
  ["www.ebi.ac.uk", "/europepmc/x"],
  ["www.ebi.ac.uk", "/ols4/api"],
  ["www.ebi.ac.uk", "/chebi"],
  ["europepmc.org", "/x"],
  ["doi.org", "/10.1/x"],
  ["dx.doi.org", "/10.1/x"],
  ["zenodo.org", "/api"],
  ["zenodo.org:80", "/api"],
  ["univ.hal.science", "/x"],
  ["hal.science", "/x"],
  ["api.crossref.org", "/works"],
  ["unlisted.example", "/"],
] as const;

/** Only additions: new entries, new members, new fields. Nothing that is shipped is named as a value to change. */
const MEMBERS = [
  "mirror.example",
  "*.mirror.example",
  "archive.org",
  "web.archive.org/cdx/search",
  "web.archive.org/save",
  "www.ebi.ac.uk/chebi",
  "zenodo.org:80",
  "*.doi.org",
  "univ.hal.science",
  "api.crossref.org",
  "api.crossref.org/works",
  "unlisted.example",
];
const limits: fc.Arbitrary<RoleLimits> = fc.record(
  { rates: fc.constantFrom("1/s", "2/s", "9/s", "1/9s"), max_delay_ms: fc.constantFrom(0, 9000) },
  { requiredKeys: [] },
);
const entry = fc.record(
  { metadata: limits, landing: limits, total: fc.record({ rates: fc.constantFrom("1/s", "3/s") }) },
  { requiredKeys: [] },
);
const services = fc
  .tuple(
    fc.shuffledSubarray(MEMBERS, { maxLength: 4 }),
    fc.array(fc.tuple(fc.constantFrom("mine", "other", "arxiv", "doi"), entry), { minLength: 4, maxLength: 4 }),
  )
  .map(([members, owners]) => {
    const all: Record<string, ServiceLimits> = {};
    for (const [index, member] of members.entries()) {
      const [name, fields] = owners[index] ?? (["mine", {}] as const);
      const isShipped = name === "arxiv" || name === "doi";
      all[name] = { ...(isShipped ? {} : fields), members: [...((all[name]?.members as string[]) ?? []), member] };
    }
    return all;
  });
const hosts = fc.dictionary(
  fc.constantFrom("mine.example", "zenodo.org:80", "zenodo.org:8443", "dx.doi.org", "europepmc.org", "www.arxiv.org"),
  entry,
  { maxKeys: 2 },
);
const additions: fc.Arbitrary<RatelimitsOptions> = fc
  .tuple(services, hosts)
  .map(([all, listed]) => ({ services: all, hosts: { ...listed } }));
const request: fc.Arbitrary<EntryRequest> = fc
  .tuple(fc.constantFrom(...REQUESTS), fc.constantFrom(...ROLES))
  .map(([[host, path], role]) => ({ host, path, role, maxWaitMs: 0 }));

/** The requests of a sequence that are admitted at one instant. Slots are freed at once, so only rates count. */
function admittedOf(policy: ConfiguredLimits, requests: readonly EntryRequest[]): readonly EntryRequest[] {
  const gate = new Gate(policy, new FakeTime());
  return requests.filter(one => {
    const grant = gate.tryEnter({ ...one, stamp: "granted" });
    grant?.release();
    return grant !== undefined;
  });
}

test("additions make no shipped limit looser, unless policy check reports it", async () => {
  const shipped = (await loadPolicy()).ratelimits.resolved;
  let cases = 0;
  let looser = 0;
  await fc.assert(
    fc.asyncProperty(
      additions,
      fc.array(fc.array(request, { minLength: 12, maxLength: 24 }), { minLength: 50, maxLength: 50 }),
      async (ratelimits, sequences) => {
        const policy = await loadPolicy({ ratelimits });
        // Hosts that only the user lists have no shipped limit but the defaults, and the user has chosen another one.
        const isChosen = ({ host, path }: EntryRequest) => {
          const { service, listed = [] } = shipped.scopeOf(host, path);
          const now = policy.ratelimits.resolved.scopeOf(host, path);
          const isUnlisted = service === undefined && listed.length === 0;
          return isUnlisted && (now.service !== undefined || (now.listed ?? []).length > 0);
        };
        for (const sequence of sequences) {
          cases += 1;
          const admitted = admittedOf(
            policy.ratelimits.resolved,
            sequence.filter(one => !isChosen(one)),
          );
          if (admittedOf(shipped, admitted).length === admitted.length) continue;
          looser += 1;
          const reported = lintPolicy(policy).filter(
            ({ rule }) => rule === "looser-than-shipped" || rule === "counted-apart",
          );
          assert.ok(reported.length > 0, JSON.stringify(admitted));
          return;
        }
      },
    ),
    { numRuns: 1000 },
  );
  assert.ok(cases >= 20_000, `${cases} cases`);
  assert.ok(looser > 0);
});
