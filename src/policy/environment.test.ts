import assert from "node:assert/strict";
import { test } from "node:test";
import { readEnvironment, unknownVariables } from "./environment.ts";
import type { SectionName } from "./layer.ts";

const NAMES = { hosts: new Set(["api.example.org"]), services: new Set<string>() };
const read = (env: Readonly<Record<string, string>>, section: SectionName = "ratelimits") =>
  readEnvironment(env, section, NAMES);

test("an unknown variable that begins with DOCSTOKG_ is reported, with a suggestion", () => {
  assert.deepEqual(
    unknownVariables({ DOCSTOKG_RLIMT_BACKEND: "x", DOCSTOKG_XYZZY: "x", PATH: "x", DOCSTOKG_AIMD: "x" }),
    [
      "unknown environment variable DOCSTOKG_RLIMT_BACKEND; did you mean DOCSTOKG_RLIMIT_BACKEND?",
      "unknown environment variable DOCSTOKG_XYZZY",
    ],
  );
});

test("variables that contain a host, a role or a resolver are known", () => {
  assert.deepEqual(
    unknownVariables({
      "DOCSTOKG_RLIMIT__a.example__metadata": "x",
      "DOCSTOKG_BREAKER__a.example": "x",
      "DOCSTOKG_BREAKER_ROLE__a.example__landing": "x",
      DOCSTOKG_BREAKER_RESOLVER__lov: "x",
    }),
    [],
  );
});

test("a role in a variable for the breaker of a host is an error that names the variable for roles", () => {
  const { assignments, problems } = read({ "DOCSTOKG_BREAKER__api.example.org__metadata": "fail_max:2" }, "breakers");
  assert.deepEqual(assignments, []);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [
      "the name ends in the role metadata: for one role, the variable is DOCSTOKG_BREAKER_ROLE__api.example.org__metadata",
    ],
  );
});

test("every wrong entry of a list is a problem", () => {
  const { assignments, problems } = read({ DOCSTOKG_RLIMITS: "a; b.example:metadata=5/s ;c.example=1/s; =2/s;" });
  assert.deepEqual(
    assignments.map(({ path }) => path),
    [["hosts", "b.example", "metadata", "rates"]],
  );
  assert.deepEqual(
    problems.map(({ message }) => message.split(";")[0]),
    ['"a" has no "="', '"c.example" names no role', '"=2/s" has no name before "="'],
  );
});

test("a variable for one host and role wins over the list, whichever is set first", () => {
  const list = { DOCSTOKG_RLIMITS: "api.example.org:metadata=5/s" };
  const single = { "DOCSTOKG_RLIMIT__api.example.org__metadata": "3/s" };
  for (const env of [
    { ...list, ...single },
    { ...single, ...list },
  ])
    assert.equal(read(env).assignments.at(-1)?.value, "3/s");
});
