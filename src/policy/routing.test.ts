import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseMember } from "./member.ts";
import { Routing, withoutPort } from "./routing.ts";

const routing = (listed: readonly string[], services: Readonly<Record<string, readonly string[]>> = {}) =>
  new Routing(
    listed,
    Object.entries(services).map(([name, members]) => [name, members.map(parseMember)] as const),
  );

test("the most specific host wins: with port, then exact, then the longest suffix; then the longest path", () => {
  const table = routing([], {
    port: ["a.example.org:8080"],
    exact: ["a.example.org"],
    near: ["*.b.example.org"],
    far: ["*.example.org"],
    part: ["a.example.org/api", "*.example.org/search"],
    deep: ["a.example.org/api/v2"],
  });
  const found = (host: string, path?: string) => table.find(host, path).service;
  assert.equal(found("a.example.org:8080"), "port");
  assert.equal(found("a.example.org:9090"), "exact");
  assert.equal(found("A.Example.ORG."), "exact");
  assert.equal(found("x.b.example.org"), "near");
  assert.equal(found("b.example.org"), "far");
  assert.equal(found("y.x.b.example.org"), "near");
  assert.equal(found("example.org"), undefined);
  assert.equal(found("badexample.org"), undefined);
  assert.equal(found("a.example.org", "/api/v2/x"), "deep");
  assert.equal(found("a.example.org", "/api/v2x"), "part");
  assert.equal(found("a.example.org", "/apix"), "exact");
  assert.equal(found("z.example.org", "/search?q=1"), "part");
  assert.equal(found("z.example.org", "/other"), "far");
});

test("every spelling of a path selects the same service", () => {
  const table = routing([], { cdx: ["web.archive.org/cdx"], replay: ["web.archive.org"] });
  for (const path of ["/cdx", "//cdx", "/%63dx/search", "/CDX", "/cdx;a=1", "/web/../cdx/x", "/cdx?url=/web"])
    assert.equal(table.find("web.archive.org", path).service, "cdx", path);
  for (const path of ["/web/2020/https://x.example/cdx", "/cdxx", "", "/"])
    assert.equal(table.find("web.archive.org", path).service, "replay", path);
});

test("a host with a port belongs to the entries of the host, and is named with its port only if the policy does", () => {
  const table = routing(["zenodo.org", "zenodo.org:80", "[::1]"]);
  assert.deepEqual(table.find("zenodo.org:80"), {
    host: "zenodo.org:80",
    names: ["zenodo.org", "zenodo.org:80"],
    listed: ["zenodo.org", "zenodo.org:80"],
    service: undefined,
    memberPath: "",
    writtenPath: "",
  });
  const { host, listed } = table.find("zenodo.org:8080");
  assert.deepEqual([host, listed], ["zenodo.org", ["zenodo.org"]]);
  assert.deepEqual(table.find("[::1]:3000").listed, ["[::1]"]);
  assert.equal(withoutPort("[2001:db8::1]"), "[2001:db8::1]");
});

test("the entry of a host does not apply to a path that belongs to a service", () => {
  const table = routing(["www.ebi.ac.uk"], { ols4: ["www.ebi.ac.uk/ols4"] });
  assert.deepEqual(table.find("www.ebi.ac.uk", "/ols4/api").listed, []);
  assert.deepEqual(table.find("www.ebi.ac.uk", "/chebi").listed, ["www.ebi.ac.uk"]);
});

describe("members", () => {
  test("are parsed with canonical hosts and normalized paths", () => {
    assert.deepEqual(parseMember("MÜNCHEN.example//A/%62/"), {
      host: "xn--mnchen-3ya.example",
      isSuffix: false,
      path: "/a/b",
      writtenPath: "//A/%62/",
    });
    for (const text of ["*.HAL.science", "*.hal.science/"])
      assert.deepEqual(parseMember(text), { host: "hal.science", isSuffix: true, path: "", writtenPath: "" });
  });

  test("that are no host, or a suffix of an address or port, are refused with their text", () => {
    for (const text of ["*.", "*", "a b", "*.10.0.0.1", "*.x.org:80", "*.[::1]", "", "https://x.org"])
      assert.throws(() => parseMember(text), RangeError, text);
  });
});

test("routing agrees with a search through all members, for random tables and URLs", () => {
  const label = fc.constantFrom("a", "b", "c");
  const host = fc.array(label, { minLength: 1, maxLength: 3 }).map(labels => [...labels, "org"].join("."));
  const path = fc.array(label, { maxLength: 3 }).map(segments => segments.map(segment => `/${segment}`).join(""));
  const member = fc
    .tuple(fc.boolean(), host, path)
    .map(([isSuffix, name, at]) => `${isSuffix ? "*." : ""}${name}${at}`);
  fc.assert(
    fc.property(fc.uniqueArray(member, { maxLength: 12 }), host, path, (members, at, below) => {
      const table = routing([], Object.fromEntries(members.map(text => [text, [text]])));
      const matches = members.map(parseMember).filter(({ host: name, isSuffix, path: prefix }) => {
        const isHost = isSuffix ? at.endsWith(`.${name}`) : at === name;
        return isHost && `${below}/`.startsWith(`${prefix}/`);
      });
      const rank = ({ host: name, isSuffix, path: prefix }: (typeof matches)[number]) =>
        (isSuffix ? 0 : 1e6) + name.length * 1000 + prefix.length;
      const best = matches.toSorted((x, y) => rank(y) - rank(x))[0];
      const text = best && `${best.isSuffix ? "*." : ""}${best.host}${best.path}`;
      assert.equal(table.find(at, below).service, text);
    }),
    { numRuns: 5000 },
  );
});
