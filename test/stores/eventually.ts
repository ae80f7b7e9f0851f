import assert from "node:assert/strict";
import { StoreError } from "../../src/errors.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Repeats a call until it succeeds: a store reconnects by itself. */
export async function eventually(act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await act();
      return;
    } catch (error) {
      assert.ok(error instanceof StoreError, String(error));
      await systemTime.sleep(25);
    }
  }
}
