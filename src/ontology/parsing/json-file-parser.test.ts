import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonFileParser } from "./json-file-parser.ts";

/** The format and the statements of a JSON text. */
function parsed(document: unknown): readonly unknown[] {
  const statements: string[] = [];
  const parser = new JsonFileParser(
    (subject, predicate, object) => void statements.push(`${subject} ${predicate} ${object}`),
    "http://base.example/",
  );
  parser.write(JSON.stringify(document));
  parser.end();
  return [parser.format, ...statements];
}

const A = "http://x.example/a";

test("a member that is called * is a member, and not an item of a list", () => {
  assert.throws(() => parsed({ "*": { "@id": A, "@type": "http://x.example/Type" } }), /JSON without "graphs"/);
  const [format, ...statements] = parsed({ "*": 1, graphs: [{ id: "http://x.example/o", nodes: [{ id: A }] }] });
  assert.equal(format, "obographs");
  assert.ok(statements.length > 0);
  const star = "http://x.example/star";
  assert.deepEqual(parsed({ "@context": { "*": star }, "@id": A, "*": "text" }), ["json-ld", `${A} ${star} text`]);
});

test("the items of a list are nodes", () => {
  assert.deepEqual(parsed([{ "@id": A, "http://x.example/p": "text" }]), ["json-ld", `${A} http://x.example/p text`]);
});
