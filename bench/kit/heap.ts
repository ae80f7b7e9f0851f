/** Bytes that something keeps alive. */

export function collectGarbage(type: "major" | "minor"): void {
  if (globalThis.gc === undefined) throw new Error("benches need node --expose-gc; start them with npm run bench");
  globalThis.gc({ type, execution: "sync" });
}

export interface Retained<Value> {
  readonly bytes: number;
  /** Handed back so that it is alive while it is weighed. */
  readonly value: Value;
}

export async function retained<Value>(build: () => Value | Promise<Value>): Promise<Retained<Value>> {
  const before = await settledBytes();
  const value = await build();
  return { bytes: (await settledBytes()) - before, value };
}

/** `external` holds the array buffers too; those of 64 bytes and less lie in the heap itself. */
async function settledBytes(): Promise<number> {
  // One collection may only find out what the next one can free, and finalisers run between them.
  for (let times = 0; times < 4; times += 1) {
    collectGarbage("major");
    await new Promise(resolve => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
