import assert from "node:assert/strict";
import { test } from "node:test";
import { isOrderReason } from "./order-reason.ts";

test("a reason is one line that shows as it is written", () => {
  for (const text of ["maintenance", "Ihre Platte ist voll – bis 12:00", "x".repeat(200), "صيانة"])
    assert.ok(isOrderReason(text), text);
  for (const text of ["", "x".repeat(201), "a\nb", "a\u2028b", "\u202ebob@ops", "a\u2066b", "a\u0000b", "a\u001b[31mb"])
    assert.ok(!isOrderReason(text), JSON.stringify(text));
});
