import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HeaderFields } from "./stored-fields.ts";
import { varyKeyOf, varyNames } from "./vary.ts";

const lookup = (fields: HeaderFields) => (name: string) => (Object.hasOwn(fields, name) ? fields[name] : undefined);

test("the names in Vary are sorted, in lower case and without duplicates", () => {
  assert.deepEqual(varyNames(undefined), []);
  assert.deepEqual(varyNames(""), []);
  assert.deepEqual(varyNames("Accept"), ["accept"]);
  assert.deepEqual(varyNames(" Cookie,accept ,, ACCEPT\t"), ["accept", "cookie"]);
  assert.deepEqual(varyNames(["B", "a, b"]), ["a", "b"]);
  assert.deepEqual(varyNames("Foo, *"), ["*", "foo"]);
});

test("requests with equal Vary fields select the same variant", () => {
  const names = varyNames("accept, x-tier");
  const key = (fields: HeaderFields) => varyKeyOf(names, lookup(fields));
  assert.equal(key({ accept: "a", "x-other": "1" }), key({ accept: " a\t", "x-other": "2" }));
  assert.equal(key({ accept: ["a", " b"] }), key({ accept: "a, b" }));
  assert.notEqual(key({ accept: "a" }), key({ accept: "A" }));
  assert.notEqual(key({}), key({ accept: "" }));
  assert.equal(key({}), key({ accept: [] }));
  assert.notEqual(key({ accept: "1" }), key({ "x-tier": "1" }));
});

test("without Vary there is one variant, and its key is empty", () => {
  assert.equal(varyKeyOf([], lookup({ accept: "a" })), "");
});

test("two requests share a key exactly when every selecting field is equal", () => {
  const value = fc.option(
    fc.string().map(text => text.replaceAll(",", "").trim()),
    { nil: undefined },
  );
  const fields = fc.record({ a: value, b: value });
  fc.assert(
    fc.property(fields, fields, (one, other) => {
      const same = one.a === other.a && one.b === other.b;
      assert.equal(varyKeyOf(["a", "b"], lookup(one)) === varyKeyOf(["a", "b"], lookup(other)), same);
    }),
  );
});

test("spaces around the commas of a list do not separate variants, and commas in quotes are no separators", () => {
  const space = fc.constantFrom("", " ", "\t", "  ");
  const element = fc.constantFrom("1", "b c", '"x,y"', '"q\\", "', "");
  const list = fc.array(fc.tuple(space, element, space), { minLength: 1 });
  fc.assert(
    fc.property(list, elements => {
      const loose = elements.map(([before, text, after]) => `${before}${text}${after}`).join(",");
      const tight = elements.map(([, text]) => text).join(",");
      assert.equal(
        varyKeyOf(["foo"], () => loose),
        varyKeyOf(["foo"], () => tight),
      );
    }),
  );
  assert.notEqual(
    varyKeyOf(["foo"], () => '"a, b"'),
    varyKeyOf(["foo"], () => '"a,b"'),
  );
  assert.notEqual(
    varyKeyOf(["foo"], () => '"a, b'),
    varyKeyOf(["foo"], () => '"a,b'),
  );
});

test("case and order of languages, encodings and charsets do not separate variants, but their preferences do", () => {
  for (const name of ["accept-language", "accept-encoding", "accept-charset"]) {
    const key = (value: string) => varyKeyOf([name], () => value);
    assert.equal(key("en, de;q=0.5"), key("DE ; q=0.5,En"));
    assert.notEqual(key("en, de;q=0.5"), key("en;q=0.5, de"));
    assert.notEqual(key("en"), key("en, de"));
  }
});

test("the order of Accept separates variants, because many servers prefer the first of equal types", () => {
  const key = (value: string) => varyKeyOf(["accept"], () => value);
  assert.notEqual(key("text/html, application/json"), key("application/json, text/html"));
  assert.equal(key("text/html,application/json"), key("text/html , application/json"));
});

test("credentials are compared as they are", () => {
  const key = (value: string) => varyKeyOf(["x-api-key"], () => value);
  assert.notEqual(key("a,b"), key("a, b"));
});

test("a list that begins with a quoted string is split at each comma outside of quotes", () => {
  const key = (value: string) => varyKeyOf(["prefer"], () => value);
  assert.equal(key('"a,b" , c'), key('"a,b",c'));
  assert.equal(key('x , "a\\",b" , c'), key('x,"a\\",b",c'));
  assert.notEqual(key('"a , b"'), key('"a,b"'));
  assert.notEqual(key('x, "c"'), key('y, "c"'));
});
