import assert from "node:assert/strict";
import { test } from "node:test";
import { IriBase } from "./iri-base.ts";
import { contextOf, JsonLdContext } from "./json-ld-context.ts";

test("a context counts towards the limit only when it is read again, so that every node may have one", () => {
  const initial = new JsonLdContext(new IriBase("urn:x:"), undefined, "", new Map(), undefined);
  const around = ["a", "b", "c"].map(name => contextOf(initial, { [name]: "urn:a" }, initial));
  assert.equal(initial.read.repeatedDefinitions, 0);
  const scoped = { d: "urn:d", e: "urn:e" };
  for (const context of around) contextOf(context, scoped, initial);
  assert.equal(initial.read.repeatedDefinitions, 4);
  for (const context of around) contextOf(context, scoped, initial);
  assert.equal(initial.read.repeatedDefinitions, 4);
});
