import assert from "node:assert/strict";
import { test } from "node:test";
import { filterProblem } from "./work-filter.ts";

test("a work is excluded by what its metadata says, and never by what it does not say", () => {
  const filter = { fromYear: 2010, toYear: 2020, openOnly: true, licences: ["cc-by"], types: ["article-journal"] };
  assert.equal(filterProblem(filter, {}), undefined);
  assert.equal(
    filterProblem(filter, { year: 2010, openAccess: "gold", licence: "cc-by", type: "article-journal" }),
    undefined,
  );
  assert.equal(filterProblem(filter, { year: 2009 }), "published in 2009, before 2010");
  assert.equal(filterProblem(filter, { year: 2021 }), "published in 2021, after 2020");
  assert.equal(filterProblem(filter, { openAccess: "closed" }), "open access status is closed");
  assert.equal(filterProblem(filter, { type: "book" }), "type is book, not article-journal");
  assert.equal(filterProblem({ licences: ["cc-by", "cc0"] }, { licence: "x" }), "licence is x, not cc-by or cc0");
  assert.equal(filterProblem({}, { year: 1, openAccess: "closed" }), undefined);
});

test("licences are compared by their name, in every spelling", () => {
  const isWanted = (licence: string, wanted = "cc-by") =>
    filterProblem({ licences: [wanted] }, { licence }) === undefined;
  const same = ["cc-by", "CC BY", "CC-BY-4.0", "cc by 3.0", "https://creativecommons.org/licenses/by/4.0/", "cc_by"];
  for (const licence of [...same, "https://creativecommons.org/licenses/by/4.0/deed.de"])
    assert.ok(isWanted(licence), licence);
  for (const licence of ["cc0", "CC0 1.0", "http://creativecommons.org/publicdomain/zero/1.0/legalcode"])
    assert.ok(isWanted(licence, "cc0"), licence);
  for (const licence of ["cc-by-nc", "https://creativecommons.org/licenses/by-nc/4.0/", "cc0", "publisher-specific"])
    assert.ok(!isWanted(licence), licence);
});
