import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesByName } from "./file-names.ts";

/** The names of the files by the role that they get. */
function rolesOf(...names: readonly string[]) {
  const candidates = candidatesByName(names.map(name => ({ name, url: name })));
  const urlsOf = (wanted: string) => candidates.filter(({ role = "article" }) => role === wanted).map(({ url }) => url);
  return { article: urlsOf("article"), supplement: urlsOf("supplement") };
}

test("a document whose name has an ordinary word that resembles supplement or appendix is a document", () => {
  const names = [
    ...["Food_supply_chains.pdf", "suppliers.pdf", "supplanted.pdf", "appendicitis.pdf", "Annexation of Texas.pdf"],
    ...["design.pdf", "prism.xml", "supplication.pdf"],
  ];
  for (const name of names) assert.deepEqual(rolesOf(name, "paper.pdf").supplement, [], name);
});

test("supplements are recognised by their names, also within other words", () => {
  const names = [
    ...[
      "Supplementary_data.pdf",
      "suppl1.pdf",
      "SupplInfo.pdf",
      "OnlineAppendix.pdf",
      "appendices.xml",
      "Annex 2.pdf",
      "annexe_1.pdf",
      "appendice.pdf",
    ],
    ...["paper_SI.pdf", "41586_2020_ESM.pdf", "sm.pdf"],
  ];
  for (const name of names)
    assert.deepEqual(rolesOf(name, "paper.pdf"), { article: ["paper.pdf"], supplement: [name] }, name);
});

test("the only document of a deposit is its document, even if its name is that of a supplement", () => {
  for (const name of ["thesis-with-appendix.pdf", "Roadmap SI units.pdf", "higgs-sm-review.pdf", "supplements.pdf"])
    assert.deepEqual(rolesOf("data.csv", name, "figure.png"), { article: [name], supplement: ["data.csv"] }, name);
});
