/** Stands in for `node:test` in a trial process: keeps the tests of a file, so that each of them can run many times. */

export interface CollectedTest {
  readonly name: string;
  readonly run: () => unknown;
}

let collected: CollectedTest[] = [];
let suites: readonly string[] = [];

/** The tests of the file that `load` imports. */
export async function collectTests(load: () => Promise<unknown>): Promise<readonly CollectedTest[]> {
  collected = [];
  await load();
  return collected;
}

export function test(name: string, ...[first, second]: readonly unknown[]): void {
  const run = typeof first === "function" ? first : second;
  if (typeof run !== "function" || run.length > 0)
    throw new Error(`${name}: a test here is a function without parameters`);
  const { skip = false } = typeof first === "object" ? ({ ...first } as { skip?: unknown }) : {};
  if (skip === false) collected.push({ name: [...suites, name].join(" > "), run: () => run() });
}

export function describe(name: string, define: () => void): void {
  const outer = suites;
  suites = [...outer, name];
  define();
  suites = outer;
}
