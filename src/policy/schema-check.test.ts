import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import * as s from "./schema.ts";
import { checkBySchema } from "./schema-check.ts";

function issuesOf(schema: s.AnySchema, value: unknown): readonly string[] {
  return checkBySchema(schema, value).issues.map(({ path, message, kind }) => `${path.join(".")} ${kind}: ${message}`);
}

/** The same schema twice: ours, and zod's as the oracle. */
const ours = s.object({
  name: s.string().min(1).max(4).optional(),
  key: s.string().regex(/^x/, "expected x").optional(),
  share: s.number().above(0).max(1).default(0.5),
  count: s.integer().min(1).below(10).optional(),
  isOn: s.boolean().nullable().optional(),
  mode: s.oneOf("a", "b").optional(),
  rates: s
    .union([s.string(), s.list(s.string()).min(1).max(2)], "expected a rate")
    .convert(rate => [rate].flat())
    .optional(),
  byName: s.map(s.string().regex(/^[a-z]+$/), s.object({ total: s.integer() })).default({}),
});
const oracle = z.strictObject({
  name: z.string().min(1).max(4).optional(),
  key: z.string().regex(/^x/).optional(),
  share: z.number().gt(0).max(1).default(0.5),
  count: z.int().min(1).lt(10).optional(),
  isOn: z.boolean().nullable().optional(),
  mode: z.enum(["a", "b"]).optional(),
  rates: z
    .union([z.string(), z.array(z.string()).min(1).max(2)])
    .transform(rate => [rate].flat())
    .optional(),
  byName: z.record(z.string().regex(/^[a-z]+$/), z.strictObject({ total: z.int() })).prefault({}),
});

/** Valid values, values at the bounds, and values of every other type. */
const scalar = fc.constantFrom(
  ...[undefined, null, "", "x", "xyz", "a", "b", "abcde", 0, 1, 0.5, 9, 10, 2 ** 53, Number.NaN, Infinity, true, false],
);
const anything = fc.oneof(
  scalar,
  fc.array(scalar, { maxLength: 3 }),
  fc.dictionary(fc.constantFrom("a", "bc", "B", ""), fc.oneof(scalar, fc.record({ total: scalar }))),
);
const keys = [...Object.keys(oracle.shape), "unknown"];
const documents = fc.dictionary(fc.constantFrom(...keys), anything, { noNullPrototype: true, maxKeys: 4 });

test("a schema accepts the values that zod accepts, makes the same values, and finds issues at the same places", () => {
  fc.assert(
    fc.property(documents, document => {
      const expected = oracle.safeParse(document);
      const { value, issues } = checkBySchema(ours, document);
      if (expected.success) {
        assert.deepEqual(issues, []);
        assert.deepEqual(value, expected.data);
        return;
      }
      const places = expected.error.issues.flatMap(issue =>
        issue.code === "unrecognized_keys"
          ? issue.keys.map(key => [...issue.path, key].join("."))
          : [issue.path.join(".")],
      );
      assert.deepEqual([...new Set(issues.map(({ path }) => path.join(".")))], [...new Set(places)]);
    }),
    { numRuns: 2000 },
  );
});

test("issues say what was expected", () => {
  assert.deepEqual(issuesOf(ours, { name: "", share: 0, count: 1.5, isOn: "yes", mode: "c", rates: 1, rate: 1 }), [
    "name value: expected >=1 characters",
    "share value: expected >0",
    "count value: expected a whole number",
    "isOn value: expected boolean",
    'mode value: expected one of "a", "b"',
    "rates value: expected a rate",
    "rate unknown key: ",
  ]);
  assert.deepEqual(issuesOf(ours, []), [" value: expected a map"]);
  assert.deepEqual(issuesOf(ours, new Map()), [" value: expected a map"]);
  assert.deepEqual(issuesOf(ours, { rates: [] }), ["rates value: expected >=1 items"]);
});

test("a value that cannot be converted is an issue, and any other error of the conversion is thrown", () => {
  const fail = (error: Error) =>
    s.string().convert(() => {
      throw error;
    });
  assert.deepEqual(issuesOf(fail(new RangeError("no host")), "x"), [" other: no host"]);
  assert.throws(() => issuesOf(fail(new TypeError("a defect")), "x"), TypeError);
});

test("a check sees the complete value, and its issue can belong to a key below it", () => {
  const range = s
    .object({ low: s.number().max(9), high: s.number() })
    .check(({ low, high }) => (low > high ? "low is above high" : undefined), ["low"]);
  assert.deepEqual(issuesOf(range, { low: 3, high: 2 }), ["low other: low is above high"]);
  assert.deepEqual(issuesOf(range, { low: 10, high: 2 }), ["low value: expected <=9", "low other: low is above high"]);
  assert.deepEqual(issuesOf(range, { low: "3", high: 2 }), ["low value: expected number"]);
});

test("the key __proto__ of a map is an ordinary key", () => {
  const document = JSON.parse('{"__proto__": 1}');
  const { value } = checkBySchema(s.map(s.string(), s.number()), document);
  assert.deepEqual(Object.entries(value ?? {}), [["__proto__", 1]]);
  assert.deepEqual(issuesOf(s.object({}), document), ["__proto__ unknown key: "]);
});

test("an empty place of a list is a missing value, and not an item less", () => {
  const rates = s.object({ rates: s.list(s.string()).optional() });
  const withGap = ["1/SECOND", "", "2/SECOND"];
  delete withGap[1];
  assert.deepEqual(issuesOf(rates, { rates: withGap }), ["rates.1 value: expected string"]);
  assert.equal(issuesOf(rates, { rates: new Array(3) }).length, 3);
});
