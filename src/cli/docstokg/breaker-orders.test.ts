import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../../test/sharing/store-with.ts";
import { StoreError } from "../../errors.ts";
import { Operator } from "../../http/operator.ts";
import { MemoryStore } from "../../stores/memory/memory-store.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { otherOpenResolvers } from "./breaker-orders.ts";

test("resolvers that are still open are listed after a close, and none if the store fails then", async () => {
  const store = new MemoryStore(new FakeTime()).member("p");
  const operator = new Operator(store);
  const open = { kind: "open", ms: 60_000, reason: "cli-open:test", isReplacing: false } as const;
  for (const resolver of ["crossref", "unpaywall"]) await operator.order({ resolver }, open);
  await operator.order({ unit: "a.example" }, open);
  const names = (await otherOpenResolvers(operator, "unpaywall")).map(({ name }) => name);
  assert.deepEqual(names, ["crossref"]);
  const away = new Operator(storeWith(store, { list: () => Promise.reject(new StoreError("gone")) }));
  assert.deepEqual(await otherOpenResolvers(away, "unpaywall"), []);
});
