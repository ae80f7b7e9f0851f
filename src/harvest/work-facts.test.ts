import assert from "node:assert/strict";
import { test } from "node:test";
import { withFacts } from "./work-facts.ts";

const WORK = { id: 1, key: "doi:10.5555/a", ids: { doi: "10.5555/a" } };

test("known identifiers and metadata are kept, further ones are added with their source", () => {
  const first = withFacts(WORK, "one", { doi: "10.5555/b", pmid: "1" }, { title: "First", isRetracted: false });
  assert.deepEqual(first.ids, { doi: "10.5555/a", pmid: "1" });
  const second = withFacts(first, "two", {}, { title: "Second", year: 2020, isRetracted: true });
  assert.deepEqual(second.metadata, { title: "First", year: 2020, isRetracted: true });
  assert.deepEqual(second.sources, { title: "one", year: "two", isRetracted: "two" });
  assert.equal(withFacts(second, "three", { pmid: "2" }, { year: 2021, isRetracted: false }), second);
});

test("an identifier without a value is not new, and does not hide the value that another resolver adds", () => {
  assert.equal(withFacts(WORK, "one", { pmid: undefined }), WORK);
  const listed = { ...WORK, ids: { ...WORK.ids, pmid: undefined } };
  assert.equal(withFacts(listed, "one", { pmid: "1" }).ids.pmid, "1");
});
