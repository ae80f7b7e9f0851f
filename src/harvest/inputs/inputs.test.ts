import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { ConfigError } from "../../errors.ts";
import type { Work } from "../work.ts";
import {
  INPUT_FORMATS,
  type Input,
  type InputOptions,
  inputsOfArguments,
  inputsOfFile,
  inputsOfStream,
} from "./inputs.ts";

async function* chunksOf(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function readAll(text: string | Uint8Array, options: InputOptions = {}, size = 7): Promise<readonly string[]> {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const read: string[] = [];
  for await (const input of inputsOfStream(chunksOf(bytes, size), "stdin", options)) read.push(inShort(input));
  return read;
}

async function all(inputs: AsyncIterable<Input>): Promise<readonly Input[]> {
  const list: Input[] = [];
  for await (const input of inputs) list.push(input);
  return list;
}

function streamOf(text: string): AsyncIterable<Uint8Array> {
  return chunksOf(new TextEncoder().encode(text), 11);
}

/** `arxiv:2401.00001`, or `3: message`. */
function inShort(input: Input): string {
  return "work" in input ? input.work.key : `${input.problem.line}: ${input.problem.message}`;
}

test("arguments are parsed in order, and problems have their position", () => {
  const [first, second] = [...inputsOfArguments(["2401.00001", "nonsense"])];
  assert.ok(first && "work" in first && first.work.key === "arxiv:2401.00001");
  assert.ok(second && "problem" in second);
  assert.deepEqual([second.problem.source, second.problem.line, second.problem.text], ["arguments", 2, "nonsense"]);
});

test("comments, blank lines, CRLF, a BOM and a missing last line end do not change the works of a list", async () => {
  const text =
    "\ufeff# a list\r\n\r\n10.1234/abc  # the first\r\n  PMC123\t# the second\nhttps://example.org/a#b\n10.1002/x;2-#\nW12";
  assert.deepEqual(await readAll(text), [
    "doi:10.1234/abc",
    "pmcid:PMC123",
    "url:https://example.org/a",
    "doi:10.1002/x;2-#",
    "openalex:W12",
  ]);
});

test("lines in UTF-16 are read", async () => {
  const text = new Uint8Array(Buffer.from("\ufeff10.1234/é\r\nPMC1\r\n", "utf16le"));
  for (const size of [1, 3]) assert.deepEqual(await readAll(text, {}, size), ["doi:10.1234/é", "pmcid:PMC1"]);
});

test("a line that is too long is a problem with shortened text, and the next line is read", async () => {
  const text = `10.1234/a\n${"x".repeat(50_000)}\n10.1234/b`;
  assert.deepEqual(await readAll(text, {}, 1000), [
    "doi:10.1234/a",
    "2: the line has more than 8192 characters",
    "doi:10.1234/b",
  ]);
});

test("a line without an end is not kept in memory", async () => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    const chunk = new Uint8Array(1024 * 1024).fill(120);
    for (let count = 0; count < 300; count += 1) yield chunk;
  }
  const before = process.memoryUsage().heapUsed;
  const problems: Input[] = [];
  for await (const input of inputsOfStream(endless(), "stdin", {})) problems.push(input);
  assert.equal(problems.length, 1);
  assert.ok(process.memoryUsage().heapUsed - before < 100 * 1024 * 1024);
});

test("a problem contains no password, however its URL is spelled", () => {
  const urls = [
    ...["https://anna:s3cret@example.org/x", "https:anna:s3cret@example.org/x", "https:/anna:s3cret@example.org/x"],
    ...[
      "https:\\\\anna:s3cret@example.org/x",
      "https://anna:x/s3cret@example.org/x",
      "ftp://anna:s3cret@example.org/x",
    ],
    ...["https%3A%2F%2Fanna:s3cret%40example.org", "https%253A%252F%252Fanna%253As3cret%2540example.org"],
  ];
  for (const input of inputsOfArguments(urls)) {
    assert.ok("problem" in input);
    assert.doesNotMatch(JSON.stringify(input), /s3cret/);
    assert.match(input.problem.text, /…@example\.org/);
  }
});

test("a URL with an @ in its path or after its port is shown as it is", () => {
  for (const url of ["ftp://example.org/a:b@c", "ftp://example.org:8080/a@b"]) {
    const [input] = [...inputsOfArguments([url])];
    assert.ok(input && "problem" in input);
    assert.equal(input.problem.text, url);
  }
});

test("a problem contains no control characters and no line separators", async () => {
  const header = "a\u001b[31m,b\u2028c\u009b,d\u202e\n1,2,3\n";
  const csv: unknown = await all(inputsOfStream(streamOf(header), "stdin", { format: "csv" })).catch(error => error);
  assert.ok(csv instanceof ConfigError);
  const [argument] = [...inputsOfArguments(["a\u001b[31mb\u2028c\u009b"])];
  assert.ok(argument && "problem" in argument);
  for (const text of [csv.message, argument.problem.text, argument.problem.message])
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

test("a CSV list is read from the named column, and a problem has the first line of its row", async () => {
  const csv = 'title,DOI,note\r\n"A, b",10.1234/a,"two\nlines"\r\n\r\nC,,x\r\n"D ""quoted""",nonsense,\r\nE\r\n';
  const read = await readAll(csv, { format: "csv", column: "doi" });
  assert.equal(read[0], "doi:10.1234/a");
  assert.equal(read[1], "5: DOI is empty");
  assert.match(read[2] ?? "", /^6: "nonsense" is not a known identifier/);
  assert.equal(read[3], "7: DOI is empty");
  assert.equal(read.length, 4);
});

test("the delimiter of a CSV list is found in its header, and a BOM is removed", async () => {
  assert.deepEqual(await readAll("\ufeffdoi;title\n10.1234/a;x,y\n", { format: "csv" }), ["doi:10.1234/a"]);
  assert.deepEqual(await readAll("title\tpmid\nx\t123\n", { format: "csv" }), ["pmid:123"]);
  assert.deepEqual(await readAll("doi\n10.1002/x;2-a\n", { format: "csv" }), ["doi:10.1002/x;2-a"]);
});

test("a CSV list without the column of the identifiers is an error with the columns found", async () => {
  await assert.rejects(readAll("title,doi\na,10.1234/a\n", { format: "csv", column: "doii" }), {
    name: "ConfigError",
    message: "--column: column doii not found; did you mean doi?; columns found: title, doi",
  });
  await assert.rejects(readAll("a,b\n1,2\n", { format: "csv" }), {
    name: "ConfigError",
    message: /^\w+: none of the columns doi, .*--column; columns found: a, b$/,
  });
});

test("an unclosed quote in a CSV list ends the list with a problem, after at most 1 MiB", async () => {
  const short = await readAll('doi\n10.1234/a\n"10.1234/b\n10.1234/c\n', { format: "csv" });
  assert.deepEqual(short, ["doi:10.1234/a", "3: unclosed quote; the rest of the file was not read"]);
  const long = await readAll(`doi\n10.1234/a\n"${"10.1234/b\n".repeat(300_000)}`, { format: "csv" }, 65_536);
  assert.equal(long.length, 2);
  assert.match(long[1] ?? "", /^3: row has more than 1048576 characters/);
});

test("JSON lines are read from the named field or as strings, and problems have their line", async () => {
  const jsonl = '{"doi":"10.1234/a"}\n\n"PMC1"\n{"pmid":123}\n{"DOI":null}\n[1]\n{"x":1}\n{not json}\n{"id":{"a":1}}\n';
  const read = await readAll(jsonl, { format: "jsonl" });
  assert.deepEqual(read.slice(0, 4), ["doi:10.1234/a", "pmcid:PMC1", "pmid:123", "5: DOI is empty"]);
  assert.equal(read[4], "6: expected one JSON object per line");
  assert.match(read[5] ?? "", /^7: none of the columns doi.*columns found: x$/);
  assert.equal(read[6], "8: not valid JSON; expected one JSON object per line");
  assert.equal(read[7], "9: id is not a string");
  assert.deepEqual(await readAll('{"a":"2401.00001","doi":"x"}', { format: "jsonl", column: "a" }), [
    "arxiv:2401.00001",
  ]);
});

test("a JSON value that is nested too deeply to be printed is a problem of its line", async () => {
  const nested = `{"doi":${"[".repeat(400_000)}${"]".repeat(400_000)}}\n{"doi":"10.1234/b"}\n`;
  assert.deepEqual(await readAll(nested, { format: "jsonl" }, 65_536), ["1: doi is not a string", "doi:10.1234/b"]);
});

test("the extension decides the format, and a missing file is an error with its path", async t => {
  const folder = await mkdtemp(join(tmpdir(), "inputs-"));
  t.after(() => rm(folder, { recursive: true }));
  const files = { "a.csv": "doi\n10.1234/a\n", "b.ndjson": '{"doi":"10.1234/b"}\n', "c.txt": "10.1234/c\n" };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, name), text);
    const read: string[] = [];
    for await (const input of inputsOfFile(join(folder, name))) read.push(inShort(input));
    assert.deepEqual(read, [`doi:10.1234/${name[0]}`]);
  }
  const missing = join(folder, "missing.txt");
  await assert.rejects(inputsOfFile(missing).next(), {
    name: "ConfigError",
    message: /missing\.txt: cannot be read: ENOENT/,
  });
});

const SAMPLES = {
  lines: "10.1234/a\n",
  csv: "doi\n10.1234/a\n10.1234/b\n",
  jsonl: '{"doi":"10.1234/a"}\n',
  bibtex: "@article{a, doi = {10.1234/a}}\n",
  ris: "TY  - JOUR\nDO  - 10.1234/a\nER  - \n",
} as const;

test("a reader that stops early closes the file, in every format", async () => {
  for (const format of INPUT_FORMATS) {
    let isClosed = false;
    async function* source(): AsyncGenerator<Uint8Array> {
      try {
        for (let count = 0; count < 1_000_000; count += 1) yield new TextEncoder().encode(SAMPLES[format]);
      } finally {
        isClosed = true;
      }
    }
    for await (const _ of inputsOfStream(source(), "stdin", { format })) break;
    // Streams are destroyed in the next turn of the event loop.
    await new Promise(done => setImmediate(done));
    assert.equal(isClosed, true, format);
  }
});

test("the result does not depend on how the bytes are split into chunks", async () => {
  const text = fc.array(fc.constantFrom("10.1234/é", "\r\n", "\n", "#", " ", '"', "doi", ",", "\r", "\ufeff"), {
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(
      text,
      fc.integer({ min: 2, max: 9 }),
      fc.constantFrom("lines", "csv", "jsonl"),
      async (parts, size, format) => {
        const all = `doi\n${parts.join("")}`;
        assert.deepEqual(await readAll(all, { format }, size), await readAll(all, { format }, 1_000_000));
      },
    ),
  );
});

test("several identifiers in one line or cell are several works, and a DOI with separators is one", async () => {
  const lines = [
    "10.1000/a;10.1000/b",
    '"10.1000/c","10.1000/d"',
    "10.1000/e, PMC123 | 2401.00001 https://example.org/x.pdf",
    "10.1002/(SICI)1097-4636(199823)43:4<338::AID-JBM2>3.0.CO;2-E",
    "doi: 10.1000/f",
    "pmid: 123",
  ];
  const found = await all(inputsOfStream(streamOf(lines.join("\n")), "stdin"));
  assert.deepEqual(
    found.map(input => ("work" in input ? input.work.key : input.problem.message)),
    [
      ...["doi:10.1000/a", "doi:10.1000/b", "doi:10.1000/c", "doi:10.1000/d", "doi:10.1000/e", "pmcid:PMC123"],
      ...["arxiv:2401.00001", "url:https://example.org/x.pdf"],
      ...["doi:10.1002/(sici)1097-4636(199823)43:4<338::aid-jbm2>3.0.co;2-e", "doi:10.1000/f", "pmid:123"],
    ],
  );
});

test("invisible characters do not change an identifier", async () => {
  const copied = "\u200b10.1000/\u00ada\u200d\u2060bc\ufeff\n\u202a2401.00001\u202c\n";
  const found = await all(inputsOfStream(streamOf(copied), "stdin"));
  assert.deepEqual(
    found.map(input => ("work" in input ? input.work.key : input.problem.message)),
    ["doi:10.1000/abc", "arxiv:2401.00001"],
  );
});

test("a record is one work under all its identifiers, and an empty column counts as missing", async () => {
  const csv = [
    "Title,DOI,PMID,PMCID,Year",
    "One,,123,,2020",
    "Two,10.1000/B,456,PMC7,2021-05",
    "Three,,,,",
    "Four,10.1000/c,,,",
  ];
  const found = await all(inputsOfStream(streamOf(csv.join("\n")), "stdin", { format: "csv" }));
  assert.deepEqual(found, [
    { work: { key: "pmid:123", ids: { pmid: "123" }, metadata: { title: "One", year: 2020 } } },
    {
      work: {
        key: "doi:10.1000/b",
        ids: { doi: "10.1000/b", pmid: "456", pmcid: "PMC7" },
        metadata: { title: "Two", year: 2021 },
      },
    },
    { problem: { source: "stdin", line: 4, text: "", message: "DOI, PMCID, PMID are empty" } },
    { work: { key: "doi:10.1000/c", ids: { doi: "10.1000/c" }, metadata: { title: "Four" } } },
  ]);
});

test("a column without a name is neither a title nor a year", async () => {
  const csv = ",doi\n0,10.1000/a\n1999,10.1000/b\n";
  const found = await all(inputsOfStream(streamOf(csv), "stdin", { format: "csv" }));
  assert.deepEqual(found, [
    { work: { key: "doi:10.1000/a", ids: { doi: "10.1000/a" } } },
    { work: { key: "doi:10.1000/b", ids: { doi: "10.1000/b" } } },
  ]);
});

test("tables of Web of Science, Scopus and Zotero are read by their own column names", async () => {
  const tables = {
    wos: "PT\tAU\tTI\tPY\tDI\tPM\nJ\tA\tT\t2019\t10.1000/wos\t99\n",
    scopus: '"Authors","Title","Year","DOI","PubMed ID"\n"A","T","2019","10.1000/scopus","98"\n',
    zotero:
      '"Key","Item Type","Publication Year","Title","DOI","Url"\n"K","article","2019","T","10.1000/zotero","https://x.example/y"\n',
  };
  for (const [name, table] of Object.entries(tables)) {
    const [input] = await all(inputsOfStream(streamOf(table), "stdin", { format: "csv" }));
    assert.ok(input && "work" in input, name);
    assert.equal(input.work.key, `doi:10.1000/${name}`);
    assert.deepEqual(input.work.metadata, { title: "T", year: 2019 });
  }
});

test("of columns for the same identifier the first that is not empty counts, also if they have one name", async () => {
  const csv =
    "doi,title,DOI,doi,pmid\n,,10.1000/a,,\n, ,,10.1000/b,\n10.1000/c,T,10.1000/x,10.1000/y,\n,,,,12345678.0\n";
  assert.deepEqual(await readAll(csv, { format: "csv" }), [
    "doi:10.1000/a",
    "doi:10.1000/b",
    "doi:10.1000/c",
    "pmid:12345678",
  ]);
});

test("an export of docstokg and a record of OpenAlex are lists", async () => {
  const exported = { key: "arxiv:2401.00001", ids: { arxiv: "2401.00001", pmid: "7" }, url: "https://x.example/a.pdf" };
  const openalex = {
    ...{ id: "https://openalex.org/W12", doi: "https://doi.org/10.1000/a", title: "T" },
    ids: { openalex: "https://openalex.org/W12", pmid: "https://pubmed.ncbi.nlm.nih.gov/8" },
  };
  const unset = { doi: "10.1000/b", ids: { doi: null, pmid: "" } };
  const lines = [exported, openalex, { ids: [] }, unset].map(each => JSON.stringify(each)).join("\n");
  const found = await all(inputsOfStream(streamOf(lines), "stdin", { format: "jsonl" }));
  assert.deepEqual(
    found.map(input => ("work" in input ? input.work.ids : inShort(input))),
    [
      { arxiv: "2401.00001", pmid: "7" },
      { doi: "10.1000/a", pmid: "8", openalex: "W12" },
      "3: ids is not a string",
      { doi: "10.1000/b" },
    ],
  );
});

test("each BibTeX entry is one work, with braces, quotes, numbers and escaped characters", async () => {
  const bib = `@comment{10.1000/not} Some text
@string{jot = "Journal of Things"}
@article{one,
  title = {The {DNA} of \\& "things"}, journal = jot,
  doi = {10.1000/ONE\\_1}, year = 2020
}
@misc(two, eprint = "2401.00001", archivePrefix = "arXiv", title = "Two {"} words")
@inproceedings{three, url = {https://example.org/three.pdf}}
@book{four, title = {No identifier}}
@article{five, doi = {10.1000/five`;
  const found = await all(inputsOfStream(streamOf(bib), "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), [
    "doi:10.1000/one_1",
    "arxiv:2401.00001",
    "url:https://example.org/three.pdf",
    "9: the record has none of doi, arxiv, pmcid, pmid, openalex, id, url",
    "10: entry without a closing brace",
  ]);
  assert.deepEqual("work" in (found[0] ?? {}) && (found[0] as { work: Work }).work.metadata, {
    title: 'The DNA of & "things"',
    year: 2020,
  });
});

test("a BibTeX value that is joined from several is one value, and the fields after it are read", async () => {
  const bib = `@article{a, title = "A" # " B, " # {C}, doi = {10.1000/a}, year = 2020}
@article{b, month = 3 # "~" # jan, doi = "10.1000/b"}
@article{c, month = jan #, doi = {10.1000/c}}`;
  const found = await all(inputsOfStream(streamOf(bib), "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), ["doi:10.1000/a", "doi:10.1000/b", "doi:10.1000/c"]);
  assert.deepEqual((found[0] as { work: Work }).work.metadata, { title: "A B, C", year: 2020 });
});

test("a BibTeX title is plain text without the commands of LaTeX, and a URL keeps its tildes", async () => {
  const bib = `@article{a, title = {\\emph{X} of Schr{\\"o}dinger}, doi = {10.1000/a\\textless1\\textgreater}}
@article{b, title = {Part~II}, url = {\\url{https://example.org/~x/\\~u.pdf?$a=1}}}`;
  const found = await all(inputsOfStream(streamOf(bib), "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), ["doi:10.1000/a<1>", "url:https://example.org/~x/~u.pdf?$a=1"]);
  const titles = found.map(input => ("work" in input ? input.work.metadata?.title : undefined));
  assert.deepEqual(titles, ["X of Schrödinger", "Part II"]);
});

test("BibTeX that never ends is a problem and not kept in memory", async () => {
  const endless = `@article{a, title = {${"x".repeat(2_100_000)}`;
  const chunks = chunksOf(new TextEncoder().encode(endless), 1000);
  const found = await all(inputsOfStream(chunks, "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), ["1: entry has no closing brace within 1048576 characters"]);
});

test("a BibTeX entry of 3 MB is too long, not one without a closing brace, and the next one is read", async () => {
  const long = `@article{a, abstract = {${"x".repeat(3_000_000)}}}\n@article{b, doi = {10.1000/b}}`;
  const chunks = chunksOf(new TextEncoder().encode(long), 65_536);
  const found = await all(inputsOfStream(chunks, "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), ["1: entry has no closing brace within 1048576 characters", "doi:10.1000/b"]);
});

test("100,000 nested BibTeX entries that never end are read once, not once for each of them", async () => {
  for (const start of ["@a{", "@a("]) {
    const chunks = chunksOf(new TextEncoder().encode(start.repeat(100_000)), 65_536);
    const found = await all(inputsOfStream(chunks, "stdin", { format: "bibtex" }));
    assert.equal(found.length, 100_000);
    assert.equal(inShort(found[0] as Input), "1: entry without a closing brace");
  }
});

test("BibTeX entries after one that does not end are read", async () => {
  const bib = `@article{a, title = {x},
@article{b, doi = {10.1000/b}}
@article(c, doi = {10.1000/c})
@article{d, note = {(}, doi = {10.1000/d}}
@article(e, title = {x}
@article{f, doi = {10.1000/f}}`;
  const found = await all(inputsOfStream(streamOf(bib), "stdin", { format: "bibtex" }));
  assert.deepEqual(found.map(inShort), [
    "1: entry without a closing brace",
    "doi:10.1000/b",
    "doi:10.1000/c",
    "doi:10.1000/d",
    "5: entry without a closing brace",
    "doi:10.1000/f",
  ]);
});

test("each RIS or PubMed record is one work under all its identifiers", async () => {
  const ris =
    "TY  - JOUR\r\nTI  - One\r\nPY  - 2020/05/01\r\nDO  - 10.1000/one\r\nER  - \r\n\r\nTY  - JOUR\nUR  - https://example.org/two.pdf\nER  - \n";
  assert.deepEqual((await all(inputsOfStream(streamOf(ris), "stdin", { format: "ris" }))).map(inShort), [
    "doi:10.1000/one",
    "url:https://example.org/two.pdf",
  ]);
  const nbib = "PMID- 123\nTI  - One\nLID - 10.1000/one [doi]\nPMC - PMC7\n\nPMID- 124\nAID - S0001 [pii]\n";
  const found = await all(inputsOfStream(streamOf(nbib), "stdin", { format: "ris" }));
  assert.deepEqual(
    found.map(input => ("work" in input ? input.work.ids : input.problem.message)),
    [{ doi: "10.1000/one", pmid: "123", pmcid: "PMC7" }, { pmid: "124" }],
  );
});

test("a value of a PubMed record that is continued on further lines is read completely", async () => {
  const nbib = [
    ...["PMID- 123", "TI  - A long title that", "      continues here,", "      and ends.", "AB  - Text", "      Text"],
    ...["LID - 10.1000/one", "      [doi]", "", "PMID- 124", "      ", "TI  - Two", ""],
  ].join("\r\n");
  const found = await all(inputsOfStream(streamOf(nbib), "stdin", { format: "ris" }));
  assert.deepEqual(
    found.map(input => ("work" in input ? [input.work.key, input.work.metadata?.title] : input.problem.message)),
    [
      ["doi:10.1000/one", "A long title that continues here, and ends."],
      ["pmid:124", "Two"],
    ],
  );
});

test("the path of a file on the user's machine in a RIS record does not hide the URL of the work", async () => {
  const records = ["internal-pdf://12/a.pdf", "file:///home/a.pdf", "files/12/a.pdf", "https://x.example/a.pdf"].map(
    path => `TY  - JOUR\nL1  - ${path}\nUR  - https://x.example/a\nER  - \n`,
  );
  assert.deepEqual(await readAll(records.join(""), { format: "ris" }), [
    ...Array(3).fill("url:https://x.example/a"),
    "url:https://x.example/a.pdf",
  ]);
});

test("a file of another format is a problem, and not a list without works", async () => {
  for (const format of ["ris", "bibtex"] as const) {
    const [problem, ...others] = await readAll("10.1000/a\n10.1000/b\n", { format });
    assert.match(problem ?? "", /^1: found no (?:RIS or PubMed record|BibTeX entry of a work)/);
    assert.deepEqual(others, []);
    assert.deepEqual(await readAll(" \r\n\n", { format }), []);
  }
});
