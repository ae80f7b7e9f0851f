/** The names that only one of two lists has. */
export function differingNames(some: readonly string[], others: readonly string[]): readonly string[] {
  return [...some.filter(name => !others.includes(name)), ...others.filter(name => !some.includes(name))];
}
