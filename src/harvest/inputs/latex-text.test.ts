import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import fc from "fast-check";
import { bibtexEntry } from "../export/citation.ts";
import { inputsOfStream } from "./inputs.ts";
import { latexIdentifier, latexText } from "./latex-text.ts";

test("accents, symbols and escaped characters become letters, and unknown commands are dropped", () => {
  const texts: Readonly<Record<string, string>> = {
    "\\emph{X}": "X",
    "{\\em Foo} bar": "Foo bar",
    "pre{\\it fix}": "prefix",
    'G{\\"o}del, G\\"odel, G\\"{o}del, {G\\"o}del': "Gödel, Gödel, Gödel, Gödel",
    "Ha\\v{c}ek \\v cek, \\c{c}a \\'{\\i} \\'\\i s \\u\\i": "Haček ček, ça í ís ĭ",
    "Nguy\\~{\\^e}n \\'{\\^{e}}": "Nguyễn ế",
    "Stra{\\ss}e, S\\o ren, {\\AA}, \\L{}ukasz": "Straße, Søren, Å, Łukasz",
    "$\\alpha$-synuclein in 5\\,$\\mu$m": "α-synuclein in 5 μm",
    "A \\& B, 10\\% \\$ \\_ \\# \\{x\\}": "A & B, 10% $ _ # {x}",
    "a\\textasciitilde{}b\\~{}c\\^{}d\\textbackslash{}e": "a~b~c^d\\e",
    "one\\\\two\\newline three~four \\-five": "one two three four five",
    "\\constructor{x}\\__proto__": "x__proto__",
    "\\'{}e \\\"- \\'": "e -",
    "": "",
    "\\": "",
  };
  for (const [latex, text] of Object.entries(texts)) assert.equal(latexText(latex), text, latex);
});

test("an identifier keeps its tildes and dollar signs", () => {
  assert.equal(latexIdentifier("\\url{https://x.example/~a/\\~{}b/\\~c\\_d?$e}"), "https://x.example/~a/~b/~c_d?$e");
  assert.equal(latexIdentifier("10.1002/a\\textless1\\textgreater2"), "10.1002/a<1>2");
});

test("any title is the same after an export as BibTeX", async () => {
  const plain = fc
    .string({ unit: fc.constantFrom(..."\\^~$&%#_'`\".=ab uvcé"), maxLength: 40 })
    .map(text => `x${text.replace(/ +/g, " ").trim()}`);
  await fc.assert(
    fc.asyncProperty(plain, async title => {
      const entry = bibtexEntry({ key: "doi:10.1000/a", ids: { doi: "10.1000/a" }, metadata: { title } });
      for await (const input of inputsOfStream(Readable.from([entry]), "stdin", { format: "bibtex" })) {
        assert.ok("work" in input);
        assert.equal(input.work.metadata?.title, title);
      }
    }),
  );
});

test("200,000 characters of commands are read in one pass", () => {
  for (const part of ["\\'", "\\emph ", "{\\", '\\"{', "\\a "]) latexText(part.repeat(200_000 / part.length));
});
