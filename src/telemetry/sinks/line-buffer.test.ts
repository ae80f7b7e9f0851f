import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { at } from "../../../test/telemetry/kit.ts";
import type { TelemetryEvent } from "../events.ts";
import { LineBuffer } from "./line-buffer.ts";

const event = (message: string) => at(0, "cache_trouble", { message });
const append = (to: LineBuffer, one: TelemetryEvent) => to.append(one, one);

test("lines are taken in the order in which they were appended, and do not change until they are released", () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.string({ maxLength: 5_000, size: "max" }) },
    { weight: 1, arbitrary: fc.constantFrom("take all but one", "take", "release") },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: "max" }), steps => {
      const buffer = new LineBuffer();
      const queued: { readonly text: string; readonly bytes: number }[] = [];
      let taken: { readonly bytes: Buffer; readonly text: string }[] = [];
      const check = () => {
        for (const { bytes, text } of taken) assert.equal(bytes.toString(), text);
      };
      const take = (count: number) => {
        const lines = queued.splice(0, count);
        const bytes = buffer.take(lines.reduce((sum, line) => sum + line.bytes, 0));
        taken.push({ bytes, text: lines.map(({ text }) => text).join("") });
      };
      for (const made of steps) {
        if (made === "take") take(queued.length);
        else if (made === "take all but one") take(Math.max(0, queued.length - 1));
        else if (made === "release") {
          check();
          taken = [];
          buffer.release();
        } else queued.push({ text: `${JSON.stringify(event(made))}\n`, bytes: append(buffer, event(made)) });
      }
      take(queued.length);
      check();
    }),
    { numRuns: 200 },
  );
});

test("a line of any length is taken whole", () => {
  const buffer = new LineBuffer();
  const long = event("é".repeat(300_000));
  assert.equal(buffer.take(append(buffer, long)).toString(), `${JSON.stringify(long)}\n`);
  buffer.release();
  assert.equal(buffer.take(append(buffer, event("x"))).toString(), `${JSON.stringify(event("x"))}\n`);
});
