import assert from "node:assert/strict";
import { StoreError } from "../../src/errors.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Repeats a call until it succeeds: a store reconnects by itself. */
export async function eventually<Result>(act: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      assert.ok(error instanceof StoreError, String(error));
      await systemTime.sleep(25);
    }
  }
}
