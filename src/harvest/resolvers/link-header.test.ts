import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { hasRelation, linksIn } from "./link-header.ts";

test("links have their parameters, quoted or not, in any case", () => {
  assert.deepEqual(
    linksIn('<https://a.example/1,2>; REL="item next"; Type="application/pdf" , <b>;rel=alternate;flag'),
    [
      { target: "https://a.example/1,2", parameters: { rel: "item next", type: "application/pdf" } },
      { target: "b", parameters: { rel: "alternate", flag: "" } },
    ],
  );
  const [first] = linksIn('<x>; title="a \\"quoted; , <y>\\" word"; rel="item"; rel="other"');
  assert.deepEqual(first, { target: "x", parameters: { title: 'a "quoted; , <y>" word', rel: "item" } });
});

test("rel is a list of relations", () => {
  const [link] = linksIn('<x>; rel="items item"');
  assert.ok(link !== undefined && hasRelation(link, "item") && !hasRelation(link, "ite"));
});

test("a syntax error ends the parsing", () => {
  assert.deepEqual(linksIn(undefined), []);
  assert.deepEqual(linksIn("nonsense <x>"), []);
  assert.deepEqual(
    linksIn("<x>; rel=item nonsense, <y>").map(({ target }) => target),
    ["x"],
  );
  assert.equal(linksIn("<x>,".repeat(50_000)).length, 200);
});

test("no header makes it throw, and parameter names like toString are safe", () => {
  const piece = fc.constantFrom("<", ">", ";", ",", "=", '"', "\\", "rel", "__proto__", "constructor", " ", "a");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), pieces => {
      for (const { parameters } of linksIn(pieces.join("")))
        assert.equal(Object.getPrototypeOf(parameters), Object.prototype);
    }),
    { numRuns: 2000 },
  );
  const hostile = `<x>${'; a="'.repeat(10_000)}`;
  assert.equal(linksIn(hostile).length, 1);
});
