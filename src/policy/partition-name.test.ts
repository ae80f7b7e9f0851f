import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nameWithoutPartition, partitionName } from "./partition-name.ts";

test("the name of a partition's budget leads back to the common one, and does not show the partition", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 8 }), (host, partition) => {
      fc.pre(!host.includes("\n"));
      const name = partitionName(host, partition);
      assert.equal(nameWithoutPartition(name), host);
      assert.ok(!name.slice(host.length).includes(partition));
    }),
  );
  for (const name of ["api.example.org", "group arxiv", "group a#b", "#0123456789abcdef"])
    assert.equal(nameWithoutPartition(name), undefined);
});
