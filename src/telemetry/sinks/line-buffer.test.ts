import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LineBuffer } from "./line-buffer.ts";

const line = fc.record({ head: fc.string({ unit: "grapheme", maxLength: 5_000 }), rest: fc.string() });

test("lines are taken as UTF-8 in the order in which they were appended", () => {
  // An undefined step takes the lines that were appended since the last one, all but the newest.
  const steps = fc.array(fc.oneof({ weight: 4, arbitrary: line }, fc.constant(undefined)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, list => {
      const buffer = new LineBuffer();
      const queued: { readonly text: string; readonly bytes: number }[] = [];
      const take = (count: number) => {
        const lines = queued.splice(0, count);
        const bytes = buffer.take(lines.reduce((sum, { bytes }) => sum + bytes, 0));
        assert.deepEqual(bytes, Buffer.from(lines.map(({ text }) => text).join("")));
      };
      for (const step of list) {
        if (step === undefined) take(Math.max(0, queued.length - 1));
        else queued.push({ text: step.head + step.rest, bytes: buffer.append(step.head, step.rest) });
      }
      take(queued.length);
    }),
    { numRuns: 200 },
  );
});

test("bytes that were taken do not change when lines are appended later", () => {
  const buffer = new LineBuffer();
  const taken = buffer.take(buffer.append("first", "\n"));
  for (let index = 0; index < 10_000; index += 1) buffer.append(`line ${index}`, "\n");
  assert.equal(taken.toString(), "first\n");
});
