import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerRegistry } from "./breaker-registry.ts";
import { breakersOf } from "./registry-breakers.ts";

test("each registry has breakers of its own, and another object is a TypeError", () => {
  const [first, second] = [new BreakerRegistry(), new BreakerRegistry()];
  breakersOf(first).giveOrder(
    { unit: "a.example" },
    { kind: "open", ms: 60_000, reason: "cli-open:test", isReplacing: false },
  );
  assert.equal(first.state("a.example").state, "open");
  assert.equal(second.state("a.example").state, "closed");
  assert.throws(() => breakersOf({} as BreakerRegistry), /must be a BreakerRegistry of this copy of docstokg/);
});
