/** In scattered order: hosts met in the order in which they lie in memory would flatter every keyed contestant. */
export function scatteredHosts(count: number): readonly string[] {
  const stride = 7919;
  return Array.from({ length: count }, (_, index) => `host-${(index * stride) % count}.example.org`);
}
