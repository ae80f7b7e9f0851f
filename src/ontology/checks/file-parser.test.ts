import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { GRAPHS, OBO, OFN, RDF, SAMPLES, TTL } from "../../../test/ontology/sample-files.ts";
import type { OntologyFileFormat } from "../format.ts";
import { endingProblem } from "./file-ending.ts";
import { parseFile } from "./file-parser.ts";

const folder = mkdtempSync(join(tmpdir(), "ontofetch-parser-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

async function parsed(format: OntologyFileFormat, text: string | Uint8Array) {
  files += 1;
  const path = join(folder, `${files}.${format}`);
  writeFileSync(path, text);
  return parseFile(path, format);
}

for (const [format, text] of SAMPLES) {
  test(`${format}: a complete file is valid`, async () => {
    const result = await parsed(format, text);
    assert.ok(result.isValid, JSON.stringify(result));
    assert.ok(result.statements > 0);
  });

  test(`${format}: a file truncated at any byte fails the check of its end or the parser`, async () => {
    const complete = text.trimEnd();
    const endOfContent = format === "turtle" ? complete.lastIndexOf(" .") + 1 : complete.length - 1;
    for (let length = 1; length < endOfContent; length += 1) {
      const cut = text.slice(0, length);
      // A missing line of OBO, or a missing statement of Turtle, cannot be detected.
      const isBetween = format === "obo" ? cut.endsWith("\n") : format === "turtle" && /[.]$/.test(cut.trimEnd());
      if (isBetween || endingProblem(format, cut) !== undefined) continue;
      const verdict = await parsed(format, cut);
      assert.equal(verdict.isValid, false, JSON.stringify(cut.slice(-40)));
    }
  });
}

test("damage in the middle is detected, and the message names the line", async () => {
  const verdicts = await Promise.all([
    parsed("rdf-xml", RDF.replace("</owl:Ontology>", "</owl:Ontolog>")),
    parsed("obo", OBO.replace("name:", "nam\u0000e")),
    parsed("obo", OBO.replace("id: HP:1\n", "")),
    parsed("functional", OFN.replace("(:a))", "(:a)))")),
    parsed("turtle", TTL.replace("a owl:Ontology", "a owl:Ontology owl:Class")),
    parsed("obographs", GRAPHS.replace('"nodes":[', '"nodes":[,')),
  ]);
  for (const verdict of verdicts) assert.equal(verdict.isValid, false, JSON.stringify(verdict));
  const [, line] = verdicts;
  assert.ok(line !== undefined && !line.isValid);
  assert.match(line.problem, /^line 7: /);
});

test("nesting deeper than 2000 is refused before the parser reads on", async () => {
  const deep = (opening: string, closing: string, depth: number) => opening.repeat(depth) + closing.repeat(depth);
  const rdf = (depth: number) =>
    `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:">${deep("<e:A><e:p>", "</e:p></e:A>", depth)}</rdf:RDF>`;
  const owx = (depth: number) =>
    `<Ontology xmlns="http://www.w3.org/2002/07/owl#">${deep("<A>", "</A>", depth)}</Ontology>`;
  const cases: readonly (readonly [OntologyFileFormat, (depth: number) => string, string])[] = [
    ["obographs", depth => `{"graphs":${deep("[", "]", depth)}}`, "values"],
    ["rdf-xml", rdf, "elements"],
    ["owl-xml", owx, "elements"],
  ];
  const path = join(folder, "deep");
  for (const [format, text, of] of cases) {
    writeFileSync(path, text(100));
    assert.equal((await parseFile(path, format)).isValid, true, format);
    writeFileSync(path, text(2001));
    const found = await parseFile(path, format);
    assert.ok(!found.isValid && found.problem.includes(`${of} nested deeper than 2000`), JSON.stringify(found));
  }
});

test("an OBO file that is not UTF-8 is invalid", async () => {
  const bytes = Buffer.concat([Buffer.from(OBO), Buffer.from([0xff, 0xfe, 0x0a])]);
  assert.equal((await parsed("obo", bytes)).isValid, false);
});

test("a file without statements is invalid", async () => {
  assert.deepEqual(await parsed("obo", "format-version: 1.2\n"), {
    isValid: false,
    problem: "file contains no stanzas",
  });
});

test("an aborted check rejects with the signal's reason", async () => {
  const path = join(folder, "aborted.obo");
  writeFileSync(path, OBO);
  await assert.rejects(parseFile(path, "obo", AbortSignal.abort(new Error("enough"))), { message: "enough" });
});
