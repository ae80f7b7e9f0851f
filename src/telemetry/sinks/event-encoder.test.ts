import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TelemetryEvent } from "../events.ts";
import { EventEncoder } from "./event-encoder.ts";
import { NO_SPACE } from "./json-bytes.ts";

const value = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme-ascii" }),
  fc.constantFrom('"', "\\", "\u0000", "\u001f", "\u007f", "\u2028", "\ud800", "é", "𝒳"),
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  // Times in ms, as events have them.
  fc.integer({ min: 0, max: 2e9 }).map(us => us / 1000),
  fc.constantFrom(0, -0, 0.001, 0.1, 999_999.999, 1_000_000, 1e21, 5e-324, 0.1 + 0.2, Number.NaN, 2 ** 53),
  fc.boolean(),
  fc.constant(null),
  fc.constant(undefined),
);
const name = fc.oneof(
  fc.constantFrom("host", "status", "elapsed_ms", "message"),
  fc.stringMatching(/^[a-z_"é]{1,12}$/),
);
const event = fc
  .record({
    fields: fc.dictionary(name, value, { noNullPrototype: true }),
    ts: fc.oneof(fc.nat(), fc.date({ noInvalidDate: true }).map(Number)),
    event_type: fc.constantFrom("http_request", "http_attempt", "policy_loaded", "run_ended"),
    run_id: fc.constantFrom("r", "20261116T203346.665Z-3cc992"),
    config_hash: fc.constantFrom("", "a98421f049629156", '"'),
  })
  .map(({ fields, ...envelope }) => ({ ...fields, ...envelope }) as unknown as TelemetryEvent);

/** The envelope first, then the other fields. */
function expected(event: TelemetryEvent): string {
  const { ts, event_type, run_id, config_hash } = event;
  return `${JSON.stringify({ ts, event_type, run_id, config_hash, ...(event as object) })}\n`;
}

test("a line is what JSON.stringify gives, with the envelope first", () => {
  const encoder = new EventEncoder();
  const into = Buffer.alloc(2 ** 16, "#");
  fc.assert(
    fc.property(event, fc.nat({ max: 100 }), (one, start) => {
      const end = encoder.encode(one, one, into, start);
      assert.equal(into.toString("utf8", start, end), Buffer.from(expected(one)).toString());
      into.fill("#", 0, end);
    }),
    { numRuns: 3000 },
  );
});

test("lines of one type that differ in some fields are those of JSON.stringify, also long ones", () => {
  const similar = fc.record({
    status: fc.constantFrom(200, 404, undefined),
    host: fc.constantFrom("a.example", "bb.example", "é.example"),
    elapsed_ms: fc.constantFrom(0, 0.139, 0.14, 1000),
    message: fc.constantFrom("", "short", "x".repeat(600), "é".repeat(700), "y".repeat(9000)),
    is_new: fc.constantFrom(undefined, true),
    ts: fc.constantFrom(9, 1_794_875_064_389, 1_794_875_064_390),
  });
  const others = fc.constantFrom({}, { role: "metadata" });
  fc.assert(
    fc.property(fc.array(fc.tuple(similar, others), { maxLength: 30 }), events => {
      const encoder = new EventEncoder();
      const into = Buffer.alloc(2 ** 16);
      for (const [fields, more] of events) {
        const one = {
          ...more,
          ...fields,
          event_type: "http_request",
          run_id: "r",
          config_hash: "",
        } as unknown as TelemetryEvent;
        assert.equal(into.toString("utf8", 0, encoder.encode(one, one, into, 0)), expected(one));
      }
    }),
    { numRuns: 500 },
  );
});

test("a buffer that is too small is reported, and nothing is written beyond its end", () => {
  const encoder = new EventEncoder();
  fc.assert(
    fc.property(event, fc.nat({ max: 400 }), (one, size) => {
      const memory = Buffer.alloc(2 ** 16, "#");
      const line = Buffer.from(expected(one));
      const end = encoder.encode(one, one, memory.subarray(0, size), 0);
      if (end === NO_SPACE) assert.ok(size < 6 * line.length + 100, "there was space");
      else assert.deepEqual(memory.subarray(0, end), line);
      assert.ok(memory.subarray(size).every(byte => byte === "#".charCodeAt(0)));
    }),
    { numRuns: 1000 },
  );
});
