import assert from "node:assert/strict";
import { test } from "node:test";
import { objectLayer } from "./layer.ts";
import * as s from "./schema.ts";
import { problemsOf } from "./validation.ts";

const schema = s.object({
  name: s.string().optional(),
  key: s.string().regex(/^x/, "expected a text that begins with x").optional(),
  backend: s.object({ kind: s.oneOf("memory", "redis").optional() }).optional(),
});

function messages(options: object, quotesValues?: boolean): readonly string[] {
  const layer = objectLayer(options, "test.yaml:1").assignments;
  return problemsOf(schema, layer, "test", { quotesValues }).map(({ path, message }) => `${path}: ${message}`);
}

test("a problem quotes the value that was found, unless the file may contain secrets", () => {
  const wrong = { name: 12_345, key: "secret" };
  assert.deepEqual(messages(wrong), [
    "name: expected string, found 12345",
    'key: expected a text that begins with x, found "secret"',
  ]);
  assert.deepEqual(messages(wrong, false), ["name: expected string", "key: expected a text that begins with x"]);
});

test("a value that JSON cannot write is named in the message", () => {
  assert.deepEqual(messages({ name: Number.POSITIVE_INFINITY }), ["name: expected string, found Infinity"]);
  assert.deepEqual(messages({ name: 10n }), ["name: expected string, found 10n"]);
  assert.deepEqual(messages({ name: [1, 10n] }), ['name: expected string, found [1,"10n"]']);
  assert.deepEqual(messages({ name: () => "a" }), ["name: expected string, found a function"]);
  assert.deepEqual(messages({ name: Symbol("a") }), ["name: expected string, found a symbol"]);
});

test("the address of a store is never quoted, and other URLs lose their credentials", () => {
  assert.deepEqual(messages({ backend: { kind: "redis://u:secret@a.example" } }), [
    'backend.kind: expected one of "memory", "redis" (value not shown, it may contain a password)',
  ]);
  assert.deepEqual(messages({ key: "redis://u:secret@a.example" }), [
    'key: expected a text that begins with x, found "redis://…@a.example"',
  ]);
});

test("an unknown key has a suggestion or the keys of its place, and so has a known key at the wrong place", () => {
  assert.deepEqual(messages({ bakend: {}, kind: "memory" }), [
    "bakend: unknown key; did you mean backend?",
    "kind: this key is not allowed at this place; the keys here are name, key, backend",
  ]);
});

test("the keys of a map in a list are suggested too", () => {
  const rules = s.object({ rules: s.list(s.object({ header: s.string().optional() })) });
  const { assignments } = objectLayer({ rules: [{ headr: "x" }] }, "test.yaml:1");
  assert.deepEqual(
    problemsOf(rules, assignments, "test").map(({ message }) => message),
    ["unknown key; did you mean header?"],
  );
});
