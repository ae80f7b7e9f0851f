import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isPrivateAddress } from "./private-addresses.ts";

const privateIpv4: readonly (readonly [range: string, first: string, last: string])[] = [
  ["0/8", "0.0.0.0", "0.255.255.255"],
  ["10/8", "10.0.0.0", "10.255.255.255"],
  ["100.64/10", "100.64.0.0", "100.127.255.255"],
  ["127/8", "127.0.0.0", "127.255.255.255"],
  ["169.254/16", "169.254.0.0", "169.254.255.255"],
  ["172.16/12", "172.16.0.0", "172.31.255.255"],
  ["192.0.0/24", "192.0.0.0", "192.0.0.255"],
  ["192.0.2/24", "192.0.2.0", "192.0.2.255"],
  ["192.88.99/24", "192.88.99.0", "192.88.99.255"],
  ["192.168/16", "192.168.0.0", "192.168.255.255"],
  ["198.18/15", "198.18.0.0", "198.19.255.255"],
  ["198.51.100/24", "198.51.100.0", "198.51.100.255"],
  ["203.0.113/24", "203.0.113.0", "203.0.113.255"],
  ["224/4", "224.0.0.0", "239.255.255.255"],
  ["240/4", "240.0.0.0", "255.255.255.255"],
];

/** The addresses next to those ranges, to find errors by one. */
const publicIpv4 = (
  "1.0.0.0 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 " +
  "169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.3.0 192.88.98.255 192.88.100.0 " +
  "192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 " +
  "223.255.255.255"
).split(" ");

const privateIpv6: readonly (readonly [range: string, first: string, last: string])[] = [
  ["the unspecified address and the loopback", "::", "::1"],
  ["::/96", "::2", "::ffff:ffff"],
  ["::/96 with a public address inside", "::8.8.8.8", "::1.1.1.1"],
  ["64:ff9b:1::/48", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
  ["100::/64", "100::", "100::ffff:ffff:ffff:ffff"],
  ["the rest below 2000::", "100:0:0:1::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001::/23", "2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2001:db8::/32", "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::/16", "2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["2002::/16 with a public address inside", "2002:808:808::", "2002:101:101::1"],
  ["3fff::/20", "3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["what nobody has been given", "4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["5f00::/16", "5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fc00::/7", "fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fe80::/10", "fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["fec0::/10", "fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
  ["ff00::/8", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
];

const publicIpv6 = (
  "2000:: 2001:200:: 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9:: 2001:4860:4860::8888 2003:: " +
  "2606:4700:4700::1111 2a00:1450:4001:80b::200e 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::"
).split(" ");

for (const [range, first, last] of [...privateIpv4, ...privateIpv6]) {
  test(`${range} is private from its first to its last address`, () => {
    assert.equal(isPrivateAddress(first), true, first);
    assert.equal(isPrivateAddress(last), true, last);
  });
}

test("the neighbours of the special ranges are public", () => {
  for (const address of [...publicIpv4, ...publicIpv6]) assert.equal(isPrivateAddress(address), false, address);
});

test("an address that embeds an IPv4 address is private when that one is, however it is written", () => {
  for (const address of ["::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:FFFF:10.0.0.7", "64:ff9b::a9fe:a9fe"]) {
    assert.equal(isPrivateAddress(address), true, address);
  }
  for (const address of ["::ffff:8.8.8.8", "::ffff:808:808", "64:ff9b::8.8.8.8"]) {
    assert.equal(isPrivateAddress(address), false, address);
  }
  fc.assert(
    fc.property(fc.ipV4(), address => {
      const verdict = isPrivateAddress(address);
      assert.equal(isPrivateAddress(`::ffff:${address}`), verdict);
      assert.equal(isPrivateAddress(`64:ff9b::${address}`), verdict);
    }),
  );
});

test("the result for an IPv6 address is the same in every spelling", () => {
  fc.assert(
    fc.property(fc.ipV6(), address => {
      const compressed = new URL(`http://[${address}]`).hostname.slice(1, -1);
      assert.equal(isPrivateAddress(compressed), isPrivateAddress(address));
      assert.equal(isPrivateAddress(address.toUpperCase()), isPrivateAddress(address));
    }),
  );
});

test("the zone of an address is ignored", () => {
  assert.equal(isPrivateAddress("fe80::1%eth0"), true);
  assert.equal(isPrivateAddress("::ffff:127.0.0.1%1"), true);
  assert.equal(isPrivateAddress("2606:4700:4700::1111%eth0"), false);
});

test("a text that is not an address counts as private", () => {
  for (const text of [
    "",
    "example.org",
    "8.8.8",
    "8.8.8.8.",
    "08.8.8.8",
    "0x8.8.8.8",
    "8.8.8.8%eth0",
    "[2000::]",
    " 8.8.8.8",
  ]) {
    assert.equal(isPrivateAddress(text), true, text);
  }
  fc.assert(fc.property(fc.domain(), name => assert.equal(isPrivateAddress(name), true)));
});
