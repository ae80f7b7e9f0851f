import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ConnectTo } from "./connect-to.ts";

const dials: readonly (readonly [entry: string, asked: readonly [string, number], dialled: string | undefined])[] = [
  ["example.org:80:127.0.0.1:3000", ["example.org", 80], "127.0.0.1 3000"],
  ["example.org:80:127.0.0.1:3000", ["example.org", 443], undefined],
  ["example.org:80:127.0.0.1:3000", ["www.example.org", 80], undefined],
  ["example.org::127.0.0.1:3000", ["example.org", 8443], "127.0.0.1 3000"],
  [":443:127.0.0.1:3000", ["anything.example", 443], "127.0.0.1 3000"],
  [":443:127.0.0.1:3000", ["anything.example", 80], undefined],
  ["::127.0.0.1:3000", ["anything.example", 1], "127.0.0.1 3000"],
  ["example.org:80:mirror.example:", ["example.org", 80], "mirror.example 80"],
  ["example.org:80::8080", ["example.org", 80], "example.org 8080"],
  [":::", ["example.org", 80], "example.org 80"],
  ["example.org:443:[::1]:3000", ["example.org", 443], "::1 3000"],
  ["[2001:DB8:0::1]:443:[::1]:3000", ["2001:db8::1", 443], "::1 3000"],
  ["[2001:db8::1]:443::8443", ["2001:db8::1", 443], "2001:db8::1 8443"],
  ["EXAMPLE.org.:80:Mirror.Example.:81", ["example.org", 80], "mirror.example 81"],
  ["münchen.example:80:127.1:81", ["xn--mnchen-3ya.example", 80], "127.0.0.1 81"],
];

for (const [entry, [hostname, port], dialled] of dials) {
  test(`with ${entry}, ${hostname}:${port} is connected to ${dialled ?? "the requested host"}`, () => {
    const target = new ConnectTo([entry]).target(hostname, port);
    assert.equal(target && `${target.hostname} ${target.port}`, dialled);
  });
}

test("the first entry that matches decides", () => {
  const mappings = new ConnectTo(["a.example:80:127.0.0.1:1", "a.example::127.0.0.1:2", "::127.0.0.1:3"]);
  assert.equal(mappings.target("a.example", 80)?.port, 1);
  assert.equal(mappings.target("a.example", 443)?.port, 2);
  assert.equal(mappings.target("b.example", 80)?.port, 3);
});

test("an entry allows a private address only when it names the address", () => {
  assert.equal(new ConnectTo(["a.example:80:10.0.0.7:80"]).target("a.example", 80)?.isNamed, true);
  assert.equal(new ConnectTo(["10.0.0.7:80:10.0.0.7:80"]).target("10.0.0.7", 80)?.isNamed, true);
  assert.equal(new ConnectTo([":::8080"]).target("a.example", 80)?.isNamed, false);
});

test("without entries every host is connected to itself", () => {
  assert.equal(new ConnectTo([]).target("example.org", 80), undefined);
});

const mistakes: readonly (readonly [entry: string, why: RegExp])[] = [
  ["", /it does not have four parts/],
  ["example.org", /it does not have four parts/],
  ["example.org:80:127.0.0.1", /it does not have four parts/],
  ["example.org:80:127.0.0.1:80:1", /it does not have four parts/],
  ["example.org:80:::1:8080", /it does not have four parts/],
  ["[::1:80:127.0.0.1:80", /it does not have four parts/],
  ["example.org:http:127.0.0.1:80", /"http" is not a port/],
  ["example.org:0:127.0.0.1:80", /"0" is not a port/],
  ["example.org:80:127.0.0.1:65536", /"65536" is not a port/],
  ["example.org:80:127.0.0.1: 80", /" 80" is not a port/],
  ["*.example.org:80:127.0.0.1:80", /"\*\.example\.org" is not a host/],
  ["example.org:80:[127.0.0.1]:80", /"\[127\.0\.0\.1\]" is not a host/],
  ["example.org:80:256.0.0.1:80", /"256\.0\.0\.1" is not a host/],
  ["https://example.org:80:127.0.0.1:80", /it does not have four parts/],
];

for (const [entry, why] of mistakes) {
  test(`${JSON.stringify(entry)} is refused with the entry, the reason and the form`, () => {
    assert.throws(
      () => new ConnectTo([entry]),
      (error: unknown) => {
        assert.ok(error instanceof RangeError);
        assert.ok(error.message.startsWith(`connectTo: ${JSON.stringify(entry)} is not a mapping: `), error.message);
        assert.match(error.message, why);
        assert.match(error.message, /expected host:port:address:port/);
        return true;
      },
    );
  });
}

test("any text is a mapping or a RangeError", () => {
  const piece = fc.constantFrom(":", "[", "]", "::1", "127.0.0.1", "example.org", "80", "", "*", " ");
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece, { maxLength: 9 }).map(parts => parts.join("")),
      ),
      text => {
        try {
          new ConnectTo([text]).target("example.org", 80);
        } catch (error) {
          assert.ok(error instanceof RangeError);
        }
      },
    ),
    { numRuns: 2000 },
  );
});
