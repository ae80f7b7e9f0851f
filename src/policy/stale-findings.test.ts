import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoadedPolicy } from "./load.ts";
import { staleFindings } from "./stale-findings.ts";

/** A policy of which only the rates and their comments are read. */
function shippedRates(notes: readonly string[]): LoadedPolicy {
  const assignments = notes.map((note, index) => ({
    path: ["hosts", `h${index}.example`, "metadata", "rates"],
    value: "1/SECOND",
    where: `ratelimits.yaml (shipped):${index + 1}`,
    note,
  }));
  return { ratelimits: { assignments, index: { isInEffect: () => true } } } as unknown as LoadedPolicy;
}

test("the notice of shipped rates with old sources has the right number, also for one", () => {
  const messages = (...notes: readonly string[]) =>
    staleFindings(shippedRates(notes), Date.UTC(2026, 10, 16)).map(({ message }) => message);
  const [old, recent] = ["their page, 2026-01-05", "their page, 2026-11-01"];
  assert.deepEqual(messages(recent), []);
  assert.deepEqual(messages(old, recent), ["the source of 1 shipped rate is older than 180 days: h0.example metadata"]);
  assert.deepEqual(messages(old, old), [
    "the sources of 2 shipped rates are older than 180 days: h0.example metadata, h1.example metadata",
  ]);
});
