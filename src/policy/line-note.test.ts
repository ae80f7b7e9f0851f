import assert from "node:assert/strict";
import { test } from "node:test";
import { noteAfter } from "./line-note.ts";

test("the comment behind a value ends with its line", () => {
  assert.equal(noteAfter("a: 1 # one\nb: 2 # two", 4), "one");
  assert.equal(noteAfter("a: [1, # one\n2]", 5), "one");
  assert.equal(noteAfter("a: 1\n# below", 4), undefined);
  assert.equal(noteAfter("a: 1 #  ", 4), undefined);
  assert.equal(noteAfter("a: 1", 4), undefined);
});

test("a million spaces behind a value are read once", () => {
  assert.equal(noteAfter(`a: 1${" ".repeat(1_000_000)}\n`, 4), undefined);
  assert.equal(noteAfter(`a: 1${" ".repeat(1_000_000)}# note`, 4), "note");
});
