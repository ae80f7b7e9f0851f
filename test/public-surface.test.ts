import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { outdatedPages } from "../scripts/reference.ts";
import { publicSurface } from "./public-surface.ts";

const root = resolve(import.meta.dirname, "..");
const { text, undocumented, unexported } = publicSurface(root);

test("what the package exports is what the committed snapshot shows; npm run surface writes it", () => {
  assert.equal(text, readFileSync(resolve(import.meta.dirname, "public-surface.txt"), "utf8"));
});

test("every public export and member has a doc comment", () => {
  assert.deepEqual(undocumented, []);
});

test("every type of ours that a public declaration names is exported", () => {
  assert.deepEqual(unexported, []);
});

test("the generated reference pages are those that the code gives; npm run reference writes them", async () => {
  assert.deepEqual(await outdatedPages(), []);
});
