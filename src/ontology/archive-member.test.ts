import assert from "node:assert/strict";
import { test } from "node:test";
import { isOntologyMember, memberProblem } from "./archive-member.ts";

test("ontologies in an archive are found by extension or by the name that the user gives", () => {
  const names = ["a/x.owl", "README.md", "__MACOSX/a/x.owl", ".hidden.obo", "catalog-v001.xml", "dir.owl/"];
  assert.deepEqual(
    names.filter(name => isOntologyMember(name, undefined)),
    ["a/x.owl"],
  );
  assert.deepEqual(
    ["a/x.dat", "x.owl", "ax.dat"].filter(name => isOntologyMember(name, "x.dat")),
    ["a/x.dat"],
  );
});

test("an archive with several ontologies is refused, and the message lists them", () => {
  const names = Array.from({ length: 20 }, (_, index) => `m${index}\u001b.owl`);
  assert.equal(
    memberProblem("zip", names, undefined),
    "the zip file contains 20 ontologies (m0?.owl, m1?.owl, m2?.owl, m3?.owl, m4?.owl, and 15 more); name one of them as member in extras",
  );
  assert.match(memberProblem("tar", [], "x.owl"), /contains no file named x\.owl/);
});
