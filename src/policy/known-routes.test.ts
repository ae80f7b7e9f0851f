import assert from "node:assert/strict";
import { test } from "node:test";
import { KnownRoutes } from "./known-routes.ts";
import type { RoutedRequest } from "./routing.ts";

const routed: RoutedRequest = {
  ...{ host: "a.example", names: ["a.example"], listed: ["a.example"] },
  ...{ service: undefined, memberPath: "", writtenPath: "" },
};
const [one, two] = [new Set(["K1"]), new Set<string>()];

test("requests with other keys have other routes, and their keys are asked for only where they make a difference", () => {
  const plain = new KnownRoutes(() => ({ hasTiers: false, dependsOnPath: true }));
  assert.equal(plain.of(routed, one), plain.of(routed, undefined));
  const tiered = new KnownRoutes(() => ({ hasTiers: true, dependsOnPath: false }));
  assert.equal(tiered.of(routed, one), tiered.of(routed, one));
  assert.equal(new Set([one, two, undefined].map(sentKeys => tiered.of(routed, sentKeys))).size, 3);
});

test("if the keys depend on the path, the routes of requests whose keys are not known are not kept", () => {
  const tiered = new KnownRoutes(() => ({ hasTiers: true, dependsOnPath: true }));
  assert.equal(tiered.of(routed, undefined), undefined);
  assert.equal(tiered.of(routed, one), tiered.of(routed, one));
});

test("the differences are found once for requests with the same entries", () => {
  let count = 0;
  const known = new KnownRoutes(() => {
    count += 1;
    return { hasTiers: true, dependsOnPath: false };
  });
  for (const sentKeys of [one, two, undefined, one]) known.of(routed, sentKeys);
  assert.equal(count, 1);
});
