import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeTime } from "../testing/fake-time.ts";
import { Cookies } from "./cookies.ts";

function sentTo(cookies: Cookies, url: string): string | undefined {
  return cookies.fieldsFor(url)["cookie"];
}

test("a cookie is sent to the hosts, paths and schemes that its attributes name, the longest path first", () => {
  const cookies = new Cookies(new FakeTime());
  const url = "https://www.journal.co.uk/doi/x";
  const lines = [
    "host=1",
    "site=2; Domain=.Journal.co.uk; Path=/",
    "safe=3; Secure; Path=/",
    "deep=4; Path=/doi/x",
    "__Host-a=5; Secure; Path=/",
  ];
  assert.equal(cookies.keep(url, { "set-cookie": lines }), true);
  assert.equal(sentTo(cookies, url), "deep=4; host=1; site=2; safe=3; __Host-a=5");
  assert.equal(sentTo(cookies, "http://www.journal.co.uk/doi/xy"), "host=1; site=2");
  assert.equal(sentTo(cookies, "https://www.journal.co.uk/"), "site=2; safe=3; __Host-a=5");
  assert.equal(sentTo(cookies, "https://cdn.journal.co.uk/a.pdf"), "site=2");
  assert.equal(sentTo(cookies, "https://journal.co.uk/"), "site=2");
  assert.equal(sentTo(cookies, "https://other.co.uk/"), undefined);
});

test("a cookie that its server may not set is ignored", () => {
  for (const [url, line] of [
    ["https://a.journal.com/", "x=1; Domain=com"],
    ["https://a.journal.co.uk/", "x=1; Domain=co.uk"],
    ["https://a.github.io/", "x=1; Domain=github.io"],
    ["https://a.journal.com/", "x=1; Domain=other.com"],
    ["https://journal.com/", "x=1; Domain=a.journal.com"],
    ["http://a.journal.com/", "x=1; Secure"],
    ["https://a.journal.com/", "__Secure-x=1"],
    ["https://a.journal.com/", "__Host-x=1; Secure; Path=/a"],
    ["https://127.0.0.1/", "x=1; Domain=0.0.1"],
    ["https://a.journal.com/", `x=${"1".repeat(4100)}`],
    ["https://a.journal.com/", "=; ;"],
  ] as const) {
    const cookies = new Cookies(new FakeTime());
    assert.equal(cookies.keep(url, { "set-cookie": line }), false, line);
    for (const host of ["a.journal.com", "journal.com", "b.github.io", "other.com", "0.0.1", "127.0.0.1"])
      assert.equal(sentTo(cookies, `https://${host}/`), undefined, line);
  }
});

test("a cookie for a public suffix is kept if it comes from that host, for that host alone", () => {
  const cookies = new Cookies(new FakeTime());
  assert.equal(cookies.keep("https://github.io/", { "set-cookie": "x=1; Domain=github.io" }), true);
  assert.equal(sentTo(cookies, "https://github.io/"), "x=1");
  assert.equal(sentTo(cookies, "https://a.github.io/"), undefined);
});

test("a cookie ends with Max-Age, with Expires, or when its server deletes it", async () => {
  const time = new FakeTime({ wallMs: Date.UTC(2026, 0, 1) });
  const cookies = new Cookies(time);
  const url = "http://a.example/";
  const lines = ["a=1; Max-Age=60", "b=2; Expires=Thu, 01 Jan 2026 00:02:00 GMT", "c=3", "d=4; Max-Age=0"];
  cookies.keep(url, { "set-cookie": lines });
  assert.equal(sentTo(cookies, url), "a=1; b=2; c=3");
  await time.advance(59_999);
  assert.equal(sentTo(cookies, url), "a=1; b=2; c=3");
  await time.advance(1);
  assert.equal(sentTo(cookies, url), "b=2; c=3");
  await time.advance(60_000);
  assert.equal(sentTo(cookies, url), "c=3");
  assert.equal(cookies.keep(url, { "set-cookie": "c=3" }), false);
  assert.equal(cookies.keep(url, { "set-cookie": "c=gone; Expires=Thu, 01 Jan 1970 00:00:00 GMT" }), true);
  assert.equal(cookies.keep(url, { "set-cookie": "c=gone; Max-Age=-1" }), false);
  assert.equal(sentTo(cookies, url), undefined);
});

test("memory is bounded: 50 cookies and 6,000 characters of a site, and 500 sites", () => {
  const cookies = new Cookies(new FakeTime());
  const url = "http://a.example/";
  const keepSeveral = (length: number) => {
    for (let number = 0; number < 200; number += 1)
      cookies.keep(url, { "set-cookie": `c${number}=${"x".repeat(length)}` });
    return (sentTo(cookies, url) ?? "").split("; ").map(cookie => cookie.replace(/=.*/, ""));
  };
  const lastNames = (count: number) => Array.from({ length: count }, (_, index) => `c${200 - count + index}`);
  assert.deepEqual(keepSeveral(10), lastNames(50));
  // 19 cookies of 300 characters, with their names, are below 6,000; 20 are above.
  assert.deepEqual(keepSeveral(300), lastNames(19));
  for (let site = 0; site < 600; site += 1) cookies.keep(`http://s${site}.example/`, { "set-cookie": "x=1" });
  const kept = Array.from({ length: 600 }, (_, site) => sentTo(cookies, `http://s${site}.example/`)).filter(Boolean);
  assert.equal(kept.length, 500);
  assert.equal(sentTo(cookies, "http://s599.example/"), "x=1");
});

test("no sequence of responses sends a cookie of one site to another", () => {
  const hosts = ["a.one.com", "one.com", "two.com", "one.co.uk", "two.co.uk", "u.github.io", "v.github.io", "10.0.0.1"];
  const siteOf = (host: string) => host.replace(/^a\./, "");
  const host = fc.constantFrom(...hosts);
  const domain = fc.option(fc.constantFrom(...hosts, "com", "co.uk", "github.io", "uk", "", "."), { nil: undefined });
  const response = fc.record({ host, domain, path: fc.constantFrom("", "; Path=/", "; Path=x") });
  fc.assert(
    fc.property(fc.array(response, { maxLength: 30 }), responses => {
      const cookies = new Cookies(new FakeTime());
      for (const { host: from, domain: name, path } of responses)
        cookies.keep(`https://${from}/p/q`, {
          "set-cookie": `of-${siteOf(from)}=1${name === undefined ? "" : `; Domain=${name}`}${path}`,
        });
      for (const to of hosts)
        for (const cookie of (sentTo(cookies, `https://${to}/p/q`) ?? "").split("; ").filter(Boolean))
          assert.equal(cookie, `of-${siteOf(to)}=1`);
    }),
  );
});
