import assert from "node:assert/strict";
import { test } from "node:test";
import { memberProblem, ontologyMembers } from "./archive-member.ts";

function membersOf(names: readonly string[], member?: string): readonly string[] {
  return ontologyMembers(names, name => name, member);
}

test("ontologies in an archive are found by extension or by the name that the user gives", () => {
  const names = ["a/x.owl", "README.md", "__MACOSX/a/x.owl", ".hidden.obo", "catalog-v001.xml", "dir.owl/"];
  assert.deepEqual(membersOf(names), ["a/x.owl"]);
  assert.deepEqual(membersOf(["a/x.dat", "x.owl", "ax.dat", "x.dat/"], "x.dat"), ["a/x.dat"]);
});

test("an entry at the named path is taken, also if a folder has an entry of the same name", () => {
  const names = ["old/x.owl", "x.owl", "old/a/x.owl"];
  assert.deepEqual(membersOf(names, "x.owl"), ["x.owl"]);
  assert.deepEqual(membersOf(names, "a/x.owl"), ["old/a/x.owl"]);
});

test("a path that begins with a dot and a slash is not hidden, as in an archive of the current folder", () => {
  const names = ["./", "./x.owl", "./.git/y.owl", "./._x.owl"];
  assert.deepEqual(membersOf(names), ["./x.owl"]);
  assert.deepEqual(membersOf([...names, "./old/x.owl"], "x.owl"), ["./x.owl"]);
  assert.deepEqual(membersOf(["x.owl", "a/x.owl"], "./x.owl"), ["x.owl"]);
});

test("an archive with several ontologies is refused, and the message lists them", () => {
  const names = Array.from({ length: 20 }, (_, index) => `m${index}\u001b.owl`);
  assert.equal(
    memberProblem("zip", names, undefined),
    "the zip file contains 20 ontologies (m0?.owl, m1?.owl, m2?.owl, m3?.owl, m4?.owl, and 15 more); name one of them as member in extras",
  );
  assert.match(memberProblem("tar", [], "x.owl"), /contains no file named x\.owl/);
});
