import assert from "node:assert/strict";
import { test } from "node:test";
import { SyntaxProblem } from "./syntax-problem.ts";
import { TurtleParser } from "./turtle-parser.ts";

test("a prefix with an invalid IRI is a syntax problem", () => {
  const parser = new TurtleParser("trig", () => undefined, "http://base.example/");
  assert.throws(
    () => {
      parser.write("prefix :<:>");
      parser.end();
    },
    (error: unknown) => error instanceof SyntaxProblem && error.message === "line 1: Invalid IRI",
  );
});

test("an error of the receiver of statements is thrown as it is", () => {
  const failure = new TypeError("receiver");
  const parser = new TurtleParser(
    "turtle",
    () => {
      throw failure;
    },
    "http://base.example/",
  );
  assert.throws(
    () => {
      parser.write("<a> <b> <c> .\n<d> <e> <f> .\n");
      parser.end();
    },
    error => error === failure,
  );
});

test("a file with a long address may name itself as its base", async () => {
  const parser = new TurtleParser("turtle", () => undefined, `https://example.org/x.ttl?signature=${"s".repeat(700)}`);
  parser.write("@base <> . <#a> a <#b> .");
  parser.end();
  assert.equal(parser.statements, 1);
});
