import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CollectedBody } from "./collected-body.ts";

function collected(chunks: readonly Buffer[]): CollectedBody {
  const body = new CollectedBody();
  for (const chunk of chunks) body.add(chunk);
  return body;
}

test("the collected bytes are those of the chunks, in order", () => {
  const lengths = fc.array(fc.oneof(fc.nat(3), fc.integer({ min: 1020, max: 1030 })), { maxLength: 300 });
  fc.assert(
    fc.property(lengths, given => {
      const chunks = given.map((length, number) => Buffer.alloc(length, number));
      assert.deepEqual(Buffer.concat(collected(chunks).chunks), Buffer.concat(chunks));
    }),
  );
});

test("a body that comes in single bytes is kept in few chunks", () => {
  const bytes = 100_000;
  const { chunks } = collected(Array.from({ length: bytes }, () => Buffer.from("x")));
  assert.equal(Buffer.concat(chunks).length, bytes);
  assert.ok(chunks.length <= bytes / 64 + 64, `${chunks.length} chunks`);
});

test("long chunks are not copied", () => {
  const long = Buffer.alloc(1024);
  assert.equal(collected([Buffer.from("x"), long]).chunks[1], long);
});
