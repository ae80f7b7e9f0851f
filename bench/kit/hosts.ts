/** In random order: in the order of creation, lookups would be faster than in a program, because of the CPU cache. */
export function scatteredHosts(count: number): readonly string[] {
  const stride = 7919;
  return Array.from({ length: count }, (_, index) => `host-${(index * stride) % count}.example.org`);
}
