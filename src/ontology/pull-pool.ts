/**
 * Runs `work` for `parallel` items at a time. After the first error no further item is started. The error is thrown when
 * the running items have ended.
 */
export async function runPool<Item, Result>(
  items: readonly Item[],
  parallel: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.entries();
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: Math.min(parallel, items.length) }, async () => {
      for (const [index, item] of waiting) {
        if (failures.length > 0) return;
        try {
          results[index] = await work(item);
        } catch (error) {
          failures.push(error);
        }
      }
    }),
  );
  if (failures.length > 0) throw failures[0];
  return results;
}
