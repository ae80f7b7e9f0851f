import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { robotsFor } from "./robots.ts";

function allows(text: string, target: string, product = "docstokg"): boolean {
  return robotsFor(product, 200, text).allows(target);
}

test("a missing robots.txt allows everything, a failing server disallows everything", () => {
  const forbidding = "user-agent: *\ndisallow: /";
  for (const status of [404, 410, 403, 401, 301])
    assert.equal(robotsFor("docstokg", status, forbidding).allows("/x"), true, String(status));
  for (const status of [undefined, 429, 500, 503])
    assert.equal(robotsFor("docstokg", status, "").allows("/x"), false, String(status));
  assert.equal(robotsFor("docstokg", 200, "").allows("/x"), true);
});

test("the group of the product applies, and the group for * only if there is none", () => {
  const text = "User-Agent: *\nDisallow: /\n\nUser-agent: DocsToKG/1.0\nDisallow: /private # not here\n";
  assert.equal(allows(text, "/paper"), true);
  assert.equal(allows(text, "/private/x"), false);
  assert.equal(allows(text, "/paper", "other"), false);
  assert.equal(
    allows("user-agent: docstokg\nuser-agent: other\ndisallow: /a\nuser-agent: third\ndisallow: /b", "/a"),
    false,
  );
  assert.equal(
    allows("user-agent: docstokg\nuser-agent: other\ndisallow: /a\nuser-agent: third\ndisallow: /b", "/b"),
    true,
  );
  assert.equal(
    allows("user-agent: *\ndisallow: /\nuser-agent: docstokg\n", "/x"),
    true,
    "a group without rules forbids nothing",
  );
});

test("groups of the same product are joined", () => {
  const text =
    "user-agent: docstokg\ndisallow: /a\n\nuser-agent: other\ndisallow: /\n\nuser-agent: docstokg\ndisallow: /b";
  assert.deepEqual(
    ["/a", "/b", "/c"].map(path => allows(text, path)),
    [false, false, true],
  );
});

test("the longest match decides, and Allow among equals", () => {
  const text = "user-agent: *\nallow: /a/b\ndisallow: /a\ndisallow: /page\nallow: /page\ndisallow: /*.pdf$";
  assert.deepEqual(
    ["/a", "/a/b/c", "/page", "/x.pdf", "/x.pdf?y", "/ab"].map(path => allows(text, path)),
    [false, true, true, false, true, false],
  );
});

test("* matches any text, and $ matches the end only as last character", () => {
  const matching: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
    ["/*/pdf", "/a/b/pdf/c", true],
    ["/fish*.php", "/fishheads/catfish.php?id=1", true],
    ["/*.php$", "/a.php/", false],
    ["/a$b", "/a$b", true],
    ["/$", "/", true],
    ["/$", "/x", false],
    ["/ab*b$", "/ab", false],
    ["/ab*b$", "/abb", true],
    ["*", "/x", true],
    ["/a%3cd.html", "/a%3Cd.html", true],
    ["/%7Ejoe", "/~joe/x", true],
    ["/caf\u00e9", "/caf%C3%A9", true],
    ["/a%2Fb", "/a/b", false],
  ];
  for (const [pattern, path, expected] of matching)
    assert.equal(allows(`user-agent: *\ndisallow: ${pattern}`, path), !expected, `${pattern} and ${path}`);
});

test("an empty rule disallows nothing, and robots.txt itself is always allowed", () => {
  assert.equal(allows("user-agent: *\ndisallow:", "/x"), true);
  assert.equal(allows("user-agent: *\ndisallow: /", "https://example.org/robots.txt"), true);
  assert.equal(allows("user-agent: *\ndisallow: /x?id=", "https://example.org/x?id=3"), false);
});

test("text after 500 KiB is ignored, and no line is cut", () => {
  const filler = `user-agent: *\n${"# x\n".repeat(127_990)}`;
  assert.equal(allows(`${filler}disallow: /private${"x".repeat(500)}\ndisallow: /`, "/y"), true);
});

test("no file and no path makes it throw or take long", () => {
  const line = fc.constantFrom(
    "user-agent: *",
    "user-agent: docstokg",
    "disallow: /",
    "allow: /a*b$",
    "disallow: *%",
    "\u0000",
    "sitemap: x",
    "disallow:/%ff",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(line).map(all => all.join("\n")),
      ),
      fc.string(),
      (text, path) => {
        assert.equal(typeof allows(text, path), "boolean");
      },
    ),
    { numRuns: 2000 },
  );
  const hostile = `user-agent: *\ndisallow: /${"a*".repeat(2000)}b$`;
  assert.equal(allows(hostile, `/${"a".repeat(4000)}`), true);
});

test("a group with very many names and rules applies to each of its names", () => {
  const rules = "disallow: /private\n".repeat(12_000);
  const text = `user-agent: *\n${"user-agent: a\n".repeat(10_000)}user-agent: docstokg\n${rules}`;
  assert.equal(allows(text, "/private"), false);
  assert.equal(allows(text.replace("docstokg", "b"), "/private"), false);
  assert.equal(allows(text, "/public"), true);
});

test("a path that begins with two slashes is a path", () => {
  assert.equal(allows("user-agent: *\ndisallow: //private/", "//private/x"), false);
});

test("Crawl-delay is read from the group of the product, or of * when there is none", () => {
  const delay = (text: string, product = "docstokg") => robotsFor(product, 200, text).crawlDelayS;
  const both =
    "User-agent: *\nCrawl-delay: 5\nDisallow: /x\n\nUser-agent: docstokg\nuser-agent: other\nCrawl-delay: 0.5 # s\n";
  assert.equal(delay(both), 0.5);
  assert.equal(delay(both, "third"), 5);
  assert.equal(delay("user-agent: *\ncrawl-delay: 5\nuser-agent: docstokg\ndisallow: /a\n"), undefined);
  assert.equal(delay("user-agent: docstokg\ncrawl-delay: 2\ncrawl-delay: 7\n"), 7);
  for (const value of ["", "soon", "-1", "0", "1e9", "NaN", "10s", "1,5", "Infinity"])
    assert.equal(delay(`user-agent: *\ncrawl-delay: ${value}\n`), undefined, value);
  assert.equal(robotsFor("docstokg", 404, "user-agent: *\ncrawl-delay: 5").crawlDelayS, undefined);
});

test("any 2xx has rules, and a 300 has none", () => {
  const forbidding = "user-agent: *\ndisallow: /";
  const found = [200, 299, 300].map(status => robotsFor("docstokg", status, forbidding).allows("/x"));
  assert.deepEqual(found, [false, false, true]);
});

test("rules of other programs and fields without a meaning have no effect", () => {
  assert.equal(allows("user-agent: other\ndisallow: /", "/x"), true);
  assert.equal(allows("user-agent: *\nsitemap: /x", "/x"), true);
  assert.equal(allows("user-agent: docstokg\ncrawl-delay: 5\nuser-agent: other\ndisallow: /", "/x"), true);
});

test("the pieces of a pattern are found one after the other, the last of an anchored one at the end", () => {
  const matches = (pattern: string, path: string) => !allows(`user-agent: *\ndisallow: ${pattern}`, path);
  assert.equal(matches("/*.pdf$", "/a.pdf.pdf"), true);
  assert.equal(matches("/a*x", "/ab"), false);
  assert.equal(matches("/*ab*b", "/ab"), false);
  assert.equal(matches("/*ab*b", "/abb"), true);
});

test("the first 10,000 rules count", () => {
  const file = (count: number) => `user-agent: *\n${"disallow: /x\n".repeat(count)}disallow: /private`;
  assert.equal(allows(file(9_999), "/private"), false);
  assert.equal(allows(file(10_000), "/private"), true);
});
