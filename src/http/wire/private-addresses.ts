/**
 * Addresses outside the public internet, from IANA's registries of special-purpose addresses
 * (https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry).
 * An address that is not certainly public counts as private.
 */
import { BlockList, isIP } from "node:net";

const SPECIAL_IPV4 = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private use
  ["100.64.0.0", 10], // shared by carriers
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link local; clouds serve credentials there
  ["172.16.0.0", 12], // private use
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // 6to4 relays, withdrawn
  ["192.168.0.0", 16], // private use
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved; broadcast
] as const;

/** The exceptions within 2000::/3. */
const SPECIAL_IPV6 = [
  ["2001::", 23], // protocol assignments, among them Teredo, which embeds an obfuscated IPv4 address
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4 embeds an IPv4 address; withdrawn, so no public host is lost
  ["3fff::", 20], // documentation
] as const;

/**
 * The only ranges with public addresses. An address in the last two embeds an IPv4 address and is public if that one is:
 * Node writes ::ffff:a.b.c.d for a.b.c.d, and behind NAT64 every IPv4 host has the address 64:ff9b::a.b.c.d. Plain IPv4
 * addresses need no range of their own, because BlockList applies ::ffff:0:0/96 to them too.
 */
const PUBLIC_RANGES = [
  ["2000::", 3],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
] as const;

/** BlockList applies IPv4 rules to ::ffff:a.b.c.d, but not to NAT64 addresses; those need their own rules. */
const SPECIAL_RANGES = [
  ...SPECIAL_IPV4,
  ...SPECIAL_IPV4.map(([address, bits]) => [`64:ff9b::${address}`, 96 + bits] as const),
  ...SPECIAL_IPV6,
] as const;

/** Made on first use, because most hubs allow private addresses and never check one. */
let lists: { readonly public: BlockList; readonly special: BlockList } | undefined;

/** True unless the text is a public address without brackets. */
export function isPrivateAddress(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return true;
  const family = version === 4 ? "ipv4" : "ipv6";
  // The zone names an interface of this machine: fe80::1%eth0.
  const zone = address.indexOf("%");
  const bare = zone === -1 ? address : address.slice(0, zone);
  lists ??= { public: blockList(PUBLIC_RANGES), special: blockList(SPECIAL_RANGES) };
  return !lists.public.check(bare, family) || lists.special.check(bare, family);
}

function blockList(subnets: readonly (readonly [address: string, bits: number])[]): BlockList {
  const list = new BlockList();
  for (const [address, bits] of subnets) list.addSubnet(address, bits, isIP(address) === 4 ? "ipv4" : "ipv6");
  return list;
}
