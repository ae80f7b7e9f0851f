import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { RequestTargets } from "./request-target.ts";

const ORIGIN = "https://api.example.org:8443";

/** Parsed by a new object, which knows no origin and so has to parse the URL. */
function parsedTarget(url: string) {
  return new RequestTargets().of(url);
}

describe("RequestTargets", () => {
  it("splits a URL into its origin and its path with the query", () => {
    const targets = new RequestTargets();
    assert.deepEqual(targets.of("https://Example.org:443/a?b=c#d"), { origin: "https://example.org", path: "/a?b=c" });
    assert.deepEqual(targets.of(new URL("http://127.0.0.1:80?q")), { origin: "http://127.0.0.1", path: "/?q" });
  });

  it("leaves other URLs and other values to undici, which has the errors for them", () => {
    const targets = new RequestTargets();
    for (const url of [
      "",
      "/works",
      "example.org",
      "ftp://example.org/",
      "data:,x",
      undefined,
      null,
      { origin: ORIGIN },
    ])
      assert.equal(targets.of(url), undefined);
  });

  it("does not take the origin of the last URL for that of a URL that only begins like it", () => {
    const targets = new RequestTargets();
    for (const url of ["1/a", ".evil.example/a", "@evil.example/a", ":1/a", "\\@evil.example/a", "", "?a", "#a"]) {
      targets.of("https://api.example.org/a");
      assert.deepEqual(targets.of(`https://api.example.org${url}`), parsedTarget(`https://api.example.org${url}`));
    }
  });

  it("gives for every URL what parsing gives", () => {
    const pieces = [
      "/",
      "/",
      ".",
      "..",
      "%2e",
      "%2E",
      "%2F",
      "%",
      "?",
      "#",
      "&",
      "=",
      "a",
      "Z9",
      "_",
      "-",
      "~",
      ":",
      "@",
    ];
    const odd = [
      "'",
      '"',
      " ",
      "\t",
      "\n",
      "\\",
      "|",
      "^",
      "`",
      "{",
      "}",
      "<",
      "[",
      ";",
      ",",
      "+",
      "(",
      ")",
      "*",
      "!",
      "$",
    ];
    const text = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.constantFrom(...odd), fc.string({ unit: "binary" })));
    fc.assert(
      fc.property(text, parts => {
        const url = `${ORIGIN}${parts.join("")}`;
        const targets = new RequestTargets();
        targets.of(`${ORIGIN}/`);
        assert.deepEqual(targets.of(url), parsedTarget(url));
      }),
      { numRuns: 2000 },
    );
  });
});
