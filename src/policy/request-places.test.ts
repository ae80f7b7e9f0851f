import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Identities } from "./identity.ts";
import type { Member } from "./member.ts";
import { RequestPlaces } from "./request-places.ts";
import { Routing } from "./routing.ts";

const suffix = (host: string): Member => ({ host, isSuffix: true, path: "", writtenPath: "" });

/** Identities of these hosts, and how often one of them was read. */
function identitiesOf(hosts: readonly string[]) {
  let reads = 0;
  const counting = new Proxy(hosts, {
    get: (target, key) => {
      if (typeof key === "string" && /^\d+$/.test(key)) reads += 1;
      return Reflect.get(target, key);
    },
  });
  const identities = { hosts: counting, otherPaths: () => [] } as unknown as Identities;
  return { identities, reads: () => reads };
}

function hostsOf(members: readonly Member[], identities: Identities): readonly string[] {
  const ofServices = new Map([["s", members]]);
  const places = new RequestPlaces(new Routing([], ofServices), ofServices, identities);
  return places.ofService("s").map(({ routed }) => routed.host);
}

test("a suffix has a place for each host below it that has an identity, in the order of the identities", () => {
  const label = fc.constantFrom("a", "b", "example", "org");
  const host = fc.array(label, { minLength: 1, maxLength: 4 }).map(labels => labels.join("."));
  fc.assert(
    fc.property(fc.uniqueArray(host, { maxLength: 6 }), fc.uniqueArray(host, { maxLength: 12 }), (suffixes, hosts) => {
      const expected = suffixes.flatMap(each => ["", ...hosts.filter(known => known.endsWith(`.${each}`))]);
      assert.deepEqual(hostsOf(suffixes.map(suffix), identitiesOf(hosts).identities), expected);
    }),
  );
});

test("each host with an identity is read once, however many suffixes the services have", () => {
  const hosts = Array.from({ length: 100 }, (_, index) => `a.s${index}.example`);
  const { identities, reads } = identitiesOf(hosts);
  const suffixes = hosts.map(host => suffix(host.slice(2)));
  assert.equal(hostsOf(suffixes, identities).length, 200);
  assert.equal(reads(), hosts.length);
});
