import assert from "node:assert/strict";
import { test } from "node:test";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { FakeTime } from "../testing/fake-time.ts";
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
