import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimitExceeded } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Planner } from "./planner.ts";
import type { RedirectFollower } from "./redirect-follower.ts";

const WAIT_MS = 300;
const CONSTRAINT = { kind: "window", owner: "obofoundry.org", limit: "1/SECOND" } as const;
const REFUSAL = { host: "obofoundry.org", role: "metadata", constraint: CONSTRAINT, maxWaitMs: 0 } as const;

test("all sources of a registry that must wait are planned with one response of it", async () => {
  const time = new FakeTime();
  const ids = Array.from({ length: 12 }, (_, index) => `o${index}`);
  const registry = {
    ontologies: ids.map(id => ({
      ...{ id, license: { label: "CC0" } },
      products: [{ id: `${id}.owl`, ontology_purl: `http://purl.obolibrary.org/obo/${id}.owl` }],
    })),
  };
  let sent = 0;
  const hub: Hub = Object.assign(Object.create(null), {
    fetch: async (_url: string, { maxWaitMs }: { readonly maxWaitMs: number }) => {
      await Promise.resolve();
      if (maxWaitMs === 0) throw new RateLimitExceeded({ ...REFUSAL, retryAfterMs: WAIT_MS });
      sent += 1;
      return Response.json(registry);
    },
  });
  const follower: RedirectFollower = Object.create(null);
  const planner = new Planner({ hub, follower, env: {}, time });
  const sources = ids.map(id => ({ id, resolver: "obo", targetFormats: [], extras: {} }));
  const items = await planner.plan(sources, { probes: false });
  assert.deepEqual(
    items.map(item => (item.kind === "fetch" ? item.licence : item.message)),
    ids.map(() => "CC0"),
  );
  assert.equal(sent, 1);
});
