import assert from "node:assert/strict";
import { test } from "node:test";
import { hasColour } from "./colour.ts";

test("an output has colour on a terminal, unless NO_COLOR or TERM=dumb is set", () => {
  const terminal = { isTTY: true };
  assert.equal(hasColour(terminal, { TERM: "xterm" }), true);
  assert.equal(hasColour(terminal, { NO_COLOR: "" }), true);
  assert.equal(hasColour(terminal, { NO_COLOR: "1" }), false);
  assert.equal(hasColour(terminal, { TERM: "dumb" }), false);
  assert.equal(hasColour({}, {}), false);
});
