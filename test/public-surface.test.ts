import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { outdatedPages } from "../scripts/reference.ts";
import { publicSurface } from "./public-surface.ts";

const root = resolve(import.meta.dirname, "..");
const { text, undocumented, unexported } = publicSurface(root);

test("the exports of the package equal the committed snapshot, which npm run surface writes", () => {
  assert.equal(text, readFileSync(resolve(import.meta.dirname, "public-surface.txt"), "utf8"));
});

test("every public export and member has a doc comment", () => {
  assert.deepEqual(undocumented, []);
});

test("every type of ours that a public declaration names is exported", () => {
  assert.deepEqual(unexported, []);
});

test("the reference pages equal those generated from the code, which npm run reference writes", async () => {
  assert.deepEqual(await outdatedPages(), []);
});
