import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { lintPolicy } from "./lint.ts";
import { loadPolicy } from "./load.ts";

test("the longest matching path of a split host applies", () => {
  const limiter = new RateLimiter(
    {
      groups: {
        a: { members: ["x.example/a"], metadata: { rates: "9/s" } },
        ab: { members: ["x.example/a/b"], metadata: { rates: "1/s" } },
      },
    },
    { time: new FakeTime() },
  );
  const call = () => limiter.tryAcquire({ host: "x.example", path: "/a/b/c" }) !== undefined;
  assert.deepEqual([call(), call()], [true, false]);
});

test("a host listed twice or in two services is an error, not half a limit", () => {
  assert.throws(
    () => new RateLimiter({ hosts: { "X.example": {}, "x.example": {} } }),
    /hosts\.x\.example: duplicate entry x\.example/,
  );
  const members = ["a.example"];
  assert.throws(
    () => new RateLimiter({ groups: { one: { members }, two: { members } } }),
    /a\.example is already a member of service one/,
  );
});

test("a tier applies where the key is sent, whichever of the files names the port", async () => {
  const rates = { metadata: { rates: "1/s" }, with: { API_KEY: { metadata: { rates: "9/s" } } } };
  const limitsAt = async (identified: string, limited: string, template = "{API_KEY}") => {
    const policy = await loadPolicy({
      ...{ env: { API_KEY: "k", DOCSTOKG_MAILTO: "me@example.org" } },
      identities: { hosts: { [identified]: { path: "/v2", query: { key: template } } } },
      ratelimits: { extends: "none", hosts: { [limited]: rates } },
    });
    const { resolved } = policy.ratelimits;
    const at = (path: string) => resolved.route(limited, "metadata", path).roleBudget.labels[0];
    const unused = lintPolicy(policy, 0).filter(({ rule }) => rule === "unused-tier");
    return {
      onPath: at("/v2/a"),
      elsewhere: at("/other"),
      isUnused: unused.length > 0,
      split: resolved.hasPaths(limited),
    };
  };
  const applies = { onPath: "9/SECOND", elsewhere: "1/SECOND", isUnused: false, split: true };
  assert.deepEqual(await limitsAt("x.example", "x.example"), applies);
  assert.deepEqual(await limitsAt("x.example:443", "x.example"), applies);
  assert.deepEqual(await limitsAt("x.example", "x.example:443"), applies);
  assert.deepEqual(await limitsAt("x.example:443", "x.example:443"), applies);
  assert.deepEqual(await limitsAt("localhost", "localhost:8443"), applies);
  // A key is sent to another port only if identities.yaml names it.
  const never = { onPath: "1/SECOND", elsewhere: "1/SECOND", isUnused: true };
  for (const [identified, limited] of [
    ["x.example", "x.example:8443"],
    ["x.example:8443", "x.example"],
    ["x.example:8443", "x.example:443"],
  ] as const) {
    const { split: _, ...found } = await limitsAt(identified, limited);
    assert.deepEqual(found, never, `${identified}, ${limited}`);
  }
});

test("a tier with the email address applies at every port of the host that gets it", async () => {
  const { ratelimits } = await loadPolicy({
    env: { DOCSTOKG_MAILTO: "me@example.org" },
    identities: { hosts: { "x.example": { query: { mail: "{mailto}" } } } },
    ratelimits: {
      hosts: { "x.example:8443": { metadata: { rates: "1/s" }, with: { mailto: { metadata: { rates: "9/s" } } } } },
    },
  });
  assert.deepEqual(ratelimits.resolved.route("x.example:8443", "metadata", "/").roleBudget.labels, ["9/SECOND"]);
});

test("a tier applies only to the paths that get the key, also at a host with a port", async () => {
  const { ratelimits } = await loadPolicy({
    env: { API_KEY: "k" },
    identities: { hosts: { "x.example:8443": { path: "/v2", query: { key: "{API_KEY}" } } } },
    ratelimits: {
      hosts: { "x.example:8443": { metadata: { rates: "1/s" }, with: { API_KEY: { metadata: { rates: "9/s" } } } } },
    },
  });
  const { resolved } = ratelimits;
  const labels = (path: string) => resolved.route("x.example:8443", "metadata", path).roleBudget.labels;
  assert.deepEqual([labels("/v2/a"), labels("/other")], [["9/SECOND"], ["1/SECOND"]]);
  assert.equal(resolved.hasPaths("x.example:8443"), true);
});
