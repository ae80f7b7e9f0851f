import assert from "node:assert/strict";
import { test } from "node:test";
import { unknownVariables } from "./environment.ts";

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
