import assert from "node:assert/strict";
import { test } from "node:test";
import { DecidedBySettings } from "./decided-by.ts";
import { loadPolicy } from "./load.ts";

test("reading a known setting of a full memory does not drop the others", async () => {
  const settings = new DecidedBySettings(await loadPolicy(), 2);
  const find = (limit: string) =>
    settings.of({ kind: "window", owner: "api.x", limit }, { host: "api.x", role: "metadata" });
  const first = find("10/SECOND");
  const second = find("5000/HOUR");
  assert.equal(find("10/SECOND"), first);
  assert.equal(find("5000/HOUR"), second);
});
