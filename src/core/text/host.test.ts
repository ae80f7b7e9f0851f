import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalHost, hostAndPort, urlHost } from "./host.ts";

const spellings: readonly (readonly [given: string, canonical: string])[] = [
  ["example.org", "example.org"],
  ["API.Crossref.ORG", "api.crossref.org"],
  ["MÜNCHEN.example", "xn--mnchen-3ya.example"],
  ["münchen.example.", "xn--mnchen-3ya.example"],
  ["XN--MNCHEN-3YA.example", "xn--mnchen-3ya.example"],
  ["例え。テスト", "xn--r8jz45g.xn--zckzah"],
  ["ｅｘａｍｐｌｅ.org", "example.org"],
  ["example.org.", "example.org"],
  ["example.org.:8080", "example.org:8080"],
  ["localhost", "localhost"],
  ["my_service._tcp.example", "my_service._tcp.example"],
  ["r3---sn-abc.example", "r3---sn-abc.example"],
  ["foo-.example", "foo-.example"],
  ["127.1", "127.0.0.1"],
  ["0x7f.0.0.1", "127.0.0.1"],
  ["192.0.2.1.", "192.0.2.1"],
  ["127.0.0.1:3000", "127.0.0.1:3000"],
  ["[::1]", "[::1]"],
  ["::1", "[::1]"],
  ["::", "[::]"],
  ["1::", "[1::]"],
  ["2001:DB8:0:0:0:0:0:1", "[2001:db8::1]"],
  ["[2001:db8:0::1]:8443", "[2001:db8::1]:8443"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["[::FFFF:c000:201]:8080", "192.0.2.1:8080"],
  ["[0:0:0:0:0:ffff:0:1]", "0.0.0.1"],
  ["[::127.0.0.1]", "[::7f00:1]"],
  ["[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]"],
  ["example.org:80", "example.org:80"],
  ["example.org:443", "example.org:443"],
  ["EXAMPLE.org:1", "example.org:1"],
  ["example.org:65535", "example.org:65535"],
];

for (const [given, canonical] of spellings) {
  test(`${given} is written ${canonical}`, () => {
    assert.equal(canonicalHost(given), canonical);
    assert.equal(canonicalHost(canonical), canonical);
  });
}

const refused: readonly (readonly [why: string, text: string])[] = [
  ["an empty text", ""],
  ["a lone dot", "."],
  ["an empty label", "a..example"],
  ["two trailing dots", "example.org.."],
  ["a leading dot", ".example.org"],
  ["a scheme", "https://example.org"],
  ["a scheme alone", "http:"],
  ["user information", "user@example.org"],
  ["a path", "example.org/x"],
  ["a backslash", "example.org\\x"],
  ["a query", "example.org?x"],
  ["a fragment", "example.org#x"],
  ["a leading blank", " example.org"],
  ["a trailing newline", "example.org\n"],
  ["a tab in the middle, which the URL parser would drop", "exam\tple.org"],
  ["a control character", "example\u0000.org"],
  ["percent encoding, which the URL parser would decode", "ex%61mple.org"],
  ["a wildcard", "*.example.org"],
  ["punctuation that only the URL parser allows", "a!b.example"],
  ["a full-width slash", "example.org／x"],
  ["a full-width colon", "example.org：80"],
  ["an empty port", "example.org:"],
  ["port 0", "example.org:0"],
  ["port 65536", "example.org:65536"],
  ["a port with a leading zero", "example.org:080"],
  ["a negative port", "example.org:-1"],
  ["a port in letters", "example.org:http"],
  ["two ports", "example.org:80:80"],
  ["a port without a host", ":80"],
  ["an address that overflows", "256.0.0.1"],
  ["five decimals", "1.2.3.4.5"],
  ["a name that ends in a number", "example.0"],
  ["an unclosed bracket", "[::1"],
  ["empty brackets", "[]"],
  ["a name in brackets", "[example.org]"],
  ["text behind the bracket", "[::1]x"],
  ["digits behind the bracket", "[::1]80"],
  ["a port behind a bare name with a bracket", "example]:80"],
  ["an IPv6 zone", "fe80::1%eth0"],
  ["too many groups", "1:2:3:4:5:6:7:8:9"],
  ["punycode with a letter beyond ASCII", "xn--ü.example"],
  ["a lone surrogate", "\ud800.example"],
  ["a label of 64", `${"a".repeat(64)}.example`],
  ["a label whose punycode passes 63", `${"ü".repeat(60)}.example`],
  ["a name of 254", `${"a.".repeat(126)}aa`],
  ["an endless name", "a".repeat(1_000_000)],
  ["a name behind 512 characters that the URL parser would drop", `${"\u00ad".repeat(512)}example.org`],
];

for (const [why, text] of refused) {
  test(`${why} is not a host`, () => assert.throws(() => canonicalHost(text), RangeError));
}

test("a label of 63 and a name of 253 are the longest", () => {
  const label = `${"a".repeat(63)}.example`;
  const name = `${"a.".repeat(126)}a`;
  assert.equal(name.length, 253);
  assert.equal(canonicalHost(label), label);
  assert.equal(canonicalHost(label.toUpperCase()), label);
  assert.equal(canonicalHost(name), name);
  assert.equal(canonicalHost(`${name.toUpperCase()}.:65535`), `${name}:65535`);
  assert.throws(() => canonicalHost(`${name.toUpperCase()}a`), RangeError);
});

test("the error names the input, shortened, and the valid form", () => {
  assert.throws(() => canonicalHost("exa mple"), {
    message: /^"exa mple" is not a host; expected .*example\.org:8080/,
  });
  assert.throws(() => canonicalHost("/".repeat(80)), { message: /^"\/{80}" is not a host/ });
  assert.throws(() => canonicalHost("/".repeat(81)), { message: /^"\/{80}…" is not a host/ });
});

test("a URL gives its host and the port of the connection", () => {
  assert.deepEqual(urlHost("https://API.Crossref.org./works?x=1"), { host: "api.crossref.org", port: 443 });
  assert.deepEqual(urlHost("http://user:secret@example.org/"), { host: "example.org", port: 80 });
  assert.deepEqual(urlHost("https://example.org:8443"), { host: "example.org", port: 8443 });
  assert.deepEqual(urlHost("http://example.org:443"), { host: "example.org", port: 443 });
  assert.deepEqual(urlHost(new URL("http://[::0001]:3000/")), { host: "[::1]", port: 3000 });
  assert.deepEqual(urlHost(new URL("http://MÜNCHEN.example")), { host: "xn--mnchen-3ya.example", port: 80 });
});

test("an unsupported scheme is named in the error, the URL is not", () => {
  assert.throws(() => urlHost("file:///etc/passwd"), {
    name: "RangeError",
    message: 'unsupported URL scheme "file:"; expected http: or https:',
  });
  assert.throws(() => urlHost(new URL("data:text/plain,x")), RangeError);
  for (const url of ["", "/works", "example.org", "http://", "https://secret key@exa mple/"]) {
    assert.throws(() => urlHost(url), { name: "RangeError", message: /^[^?@]*$/ });
  }
});

const piece = fc.constantFrom(
  "a",
  "Z",
  "0",
  "7",
  "x",
  "xn--",
  "-",
  "_",
  ".",
  ":",
  "[",
  "]",
  "ü",
  "ß",
  "。",
  "\u00ad",
  "0x",
);
const hostLike = fc.array(piece, { maxLength: 14 }).map(parts => parts.join(""));
const anyText = fc.oneof(
  hostLike,
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.domain(),
  fc.ipV4Extended(),
  fc.ipV6(),
);

test("any text is either a host with one canonical form or a RangeError", () => {
  fc.assert(
    fc.property(anyText, text => {
      const host = hostOrRefusal(text);
      if (host instanceof RangeError) return;
      assert.equal(canonicalHost(host), host);
      assert.match(host, /^(?:[a-z0-9_.-]+|\[[0-9a-f:]+\])(?::\d{1,5})?$/);
    }),
    { numRuns: 3000 },
  );
});

test("an IPv4 address has one canonical form, also if it is written in IPv6", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.constantFrom("::ffff:", "::FFFF:", "0:0:0:0:0:ffff:", "0000::ffff:"), (ip, prefix) => {
      assert.equal(canonicalHost(`[${prefix}${ip}]`), ip);
      assert.equal(urlHost(`http://[${prefix}${ip}]:81/`).host, ip);
    }),
  );
});

test("a canonical host without a port is what the URL parser returns", () => {
  fc.assert(
    fc.property(
      fc
        .oneof(
          fc.domain(),
          fc.ipV4(),
          fc.ipV6().map(ip => `[${ip}]`),
        )
        .filter(text => !/:ffff:/i.test(text)),
      text => {
        assert.equal(canonicalHost(text), new URL(`http://${text}`).hostname);
      },
    ),
  );
});

test("the fast path and the URL parser accept the same names", () => {
  const plain = fc.stringMatching(/^[a-z0-9_.x-]{1,12}$/);
  fc.assert(
    fc.property(plain, name => {
      // A capital letter forces the slow path, and the canonical name has none.
      const slow = hostOrRefusal(name.toUpperCase());
      const fast = hostOrRefusal(name);
      assert.equal(fast instanceof RangeError ? undefined : fast, slow instanceof RangeError ? undefined : slow);
    }),
    { numRuns: 3000 },
  );
});

function hostOrRefusal(text: string): string | RangeError {
  try {
    return canonicalHost(text);
  } catch (error) {
    assert.ok(error instanceof RangeError);
    return error;
  }
}

test("every spelling of an IPv4 address gets the canonical form of the URL parser", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 4, maxLength: 4 }),
      fc.constantFrom("", "0"),
      (parts, zero) => {
        const text = `${zero}${parts.join(".")}`;
        const parsed = URL.parse(`http://${text}`)?.hostname;
        if (parsed === undefined) assert.throws(() => canonicalHost(text), RangeError);
        else assert.equal(canonicalHost(text), parsed);
      },
    ),
  );
});

test("an IPv6 address with a port has brackets, so that the port is not read as a part of it", () => {
  const hosts = ["::1", "[::1]", "127.0.0.1", "a.example"];
  assert.deepEqual(
    hosts.map(host => hostAndPort(host, 80)),
    ["[::1]:80", "[::1]:80", "127.0.0.1:80", "a.example:80"],
  );
});
