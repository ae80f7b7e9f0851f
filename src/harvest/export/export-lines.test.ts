import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { systemTime } from "../../time/system-time.ts";
import { METADATA_FORMATS, writeMetadata } from "../downloads/metadata-file.ts";
import { workOf } from "../identifiers/identifiers.ts";
import { inputsOfStream } from "../inputs/inputs.ts";
import { openManifest } from "../manifest/manifest.ts";
import { FolderStore } from "../storage/folder-store.ts";
import { bibtexEntry, cslItem } from "./citation.ts";
import { exportText, type TextFormat } from "./export-lines.ts";

const METADATA = {
  title: 'Costs & "benefits" of 100 % {open}, access',
  authors: [{ family: "Lovelace", given: "Ada" }, { name: "The Consortium" }],
  year: 2021,
  venue: "Journal of Things",
  type: "article-journal",
  pages: "12-19",
} as const;
const CITED = { key: "doi:10.1/a_b", ids: { doi: "10.1/a_b", arxiv: "2401.00001" }, metadata: METADATA };

test("a work becomes an item of CSL-JSON without empty fields", () => {
  assert.deepEqual(cslItem(CITED), {
    id: "doi:10.1/a_b",
    type: "article-journal",
    title: METADATA.title,
    author: [{ family: "Lovelace", given: "Ada" }, { literal: "The Consortium" }],
    issued: { "date-parts": [[2021]] },
    "container-title": "Journal of Things",
    page: "12-19",
    DOI: "10.1/a_b",
    URL: "https://arxiv.org/abs/2401.00001",
  });
  assert.deepEqual(cslItem({ key: "pmid:1", ids: { pmid: "1" } }), { id: "pmid:1", type: "article", PMID: "1" });
});

test("a work becomes an entry of BibTeX with escaped text and its DOI as it is", () => {
  assert.equal(
    bibtexEntry(CITED),
    [
      "@article{doi:10.1/a_b,",
      "  author = {Lovelace, Ada and {The Consortium}},",
      '  title = {Costs \\& "benefits" of 100 \\% open, access},',
      "  year = {2021},",
      "  journal = {Journal of Things},",
      "  pages = {12--19},",
      "  doi = {10.1/a_b},",
      "  eprint = {2401.00001},",
      "  archiveprefix = {arXiv},",
      "}",
      "",
    ].join("\n"),
  );
});

test("an entry of BibTeX has an identifier of each kind, so that it can be read as a list", async () => {
  for (const ids of [{ pmcid: "PMC7" }, { pmid: "8" }, { openalex: "W9" }, { url: "https://x.example/a" }]) {
    const work = workOf(ids);
    const { value: read } = await inputsOfStream(Readable.from([bibtexEntry(work)]), "stdin", {
      format: "bibtex",
    }).next();
    assert.ok(read !== undefined && "work" in read);
    assert.equal(read.work.key, work.key);
  }
  assert.equal(cslItem(workOf({ openalex: "W9" }))["URL"], "https://openalex.org/W9");
  assert.equal(cslItem(workOf({ openalex: "W9", pmid: "8" }))["URL"], undefined);
});

test("works with similar keys have different keys in BibTeX, also where case is ignored", async () => {
  const keys = [
    ...["doi:10.1/a(b)", "doi:10.1/a-b-", "doi:10.1/a<b>", "doi:10.1/a[b]", "doi:10.1/ü", "doi:10.1/ö", "doi:10.1/-"],
    ...["url:https://x.example/A?b", "url:https://x.example/a?b", "url:https://x.example/A", "url:https://x.example/a"],
    ...["pmcid:PMC1", "openalex:W1", "arxiv:math.gt/0309136"],
  ];
  const keyOf = (key: string) => /^@misc\{([^,{}\s]+),$/m.exec(bibtexEntry({ key, ids: {} }))?.[1] ?? "";
  const cited = keys.map(keyOf);
  assert.equal(new Set(cited.map(key => key.toLowerCase())).size, keys.length, cited.join(" "));
  // Keys that need no change are kept, and the others do not depend on the works beside them.
  for (const key of ["doi:10.1/a-b-", "pmcid:PMC1", "openalex:W1", "arxiv:math.gt/0309136"])
    assert.equal(keyOf(key), key);
  assert.equal(keyOf("doi:10.1/a(b)"), "doi:10.1/a-b--7a1e7de37e8aed6c");
  // An entry can be read back by the list reader.
  const list = keys.map(key => bibtexEntry({ key, ids: { doi: "10.1000/x" } })).join("\n");
  let read = 0;
  for await (const input of inputsOfStream(Readable.from([list]), "stdin", { format: "bibtex" }))
    if ("work" in input) read += 1;
  assert.equal(read, keys.length);
});

async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const part of parts) text += part;
  return text;
}

test("braces in the name of an author do not unbalance a BibTeX entry", () => {
  const authors = [{ family: "Lov}elace", given: "A{da" }, { name: "The {Group" }];
  const entry = bibtexEntry({ key: "doi:10.1/a", ids: { doi: "10.1/a" }, metadata: { authors } });
  assert.match(entry, /^ {2}author = \{Lovelace, Ada and \{The Group\}\},$/m);
});

test("a DOI and a URL with braces and backslashes are the same when their BibTeX entry is read", async () => {
  const ids = { doi: "10.1000/{a}b\\", url: "https://example.org/?q={a\\" };
  const entry = bibtexEntry({ key: "doi:10.1000/a", ids });
  assert.match(entry, /^ {2}url = \{https:\/\/example\.org\/\?q=\\%7Ba\\%5C\},$/m);
  const { value: read } = await inputsOfStream(Readable.from([entry]), "stdin", { format: "bibtex" }).next();
  assert.ok(read !== undefined && "work" in read);
  assert.equal(read.work.ids.doi, ids.doi);
});

test("a manifest is exported in every format, with one record for each work", async t => {
  const folder = temporaryFolder("export");
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  t.after(() => manifest.close());
  const run = await manifest.beginRun("run");
  await manifest.works.add(run, [workOf({ doi: "10.1/a" }, METADATA), workOf({ pmid: "7" }, { title: "=1+1" })], {
    isPresent: () => true,
  });
  await manifest.finish(run, 1, "ok", {
    ...{ sha256: "ab".repeat(32), path: "doi_10.1_a.pdf", bytes: 10, mediaType: "application/pdf" },
    ...{ urlHash: "00", url: "https://x.example/a.pdf", resolver: "openalex", licence: "cc-by" },
  });
  await manifest.fail(2, "not-open", undefined);
  const exported = (format: TextFormat) => textOf(exportText(format, manifest.reports.workRecords()));
  const csv = (await exported("csv")).split("\r\n");
  assert.equal(csv.length, 4);
  assert.match(
    csv[1] ?? "",
    /^doi:10\.1\/a,10\.1\/a,,,,,"Costs & ""benefits"" of 100 % \{open\}, access","Lovelace, Ada; The Consortium",2021,/,
  );
  assert.match(csv[1] ?? "", /,cc-by,,,done,ok,doi_10\.1_a\.pdf,/);
  assert.match(csv[2] ?? "", /,'=1\+1,/);
  const [first, second] = (await exported("jsonl"))
    .trim()
    .split("\n")
    .map(line => JSON.parse(line));
  assert.equal(first.files[0].path, "doi_10.1_a.pdf");
  assert.deepEqual(second.metadata, { title: "=1+1" });
  assert.deepEqual(second.sources, { title: "list" });
  assert.equal(JSON.parse(await exported("csl")).length, 2);
  assert.equal((await exported("bibtex")).match(/^@/gm)?.length, 2);
  assert.equal(await textOf(exportText("csl", [])), "[]\n");
});

test("metadata is written beside the file, without secrets", async () => {
  const folder = temporaryFolder("metadata");
  const work = { id: 1, ...CITED, key: "doi:a", ids: { url: "https://x.example/a?token=Sesame" } };
  const fileStore = new FolderStore(folder);
  await fileStore.prepare();
  const file = { path: "doi_a.pdf", sha256: "ab".repeat(32) };
  const manifestFiles = { newPartName: () => "1.part" };
  for (const format of METADATA_FORMATS)
    await writeMetadata(fileStore, manifestFiles, file, work, { format, layout: "flat" });
  for (const name of ["doi_a.json", "doi_a.csl.json", "doi_a.bib"]) {
    const text = readFileSync(join(folder, name), "utf8");
    assert.match(text, /Lovelace/);
    assert.doesNotMatch(text, /Sesame/);
  }
});
