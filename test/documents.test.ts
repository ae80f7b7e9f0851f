import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, matchesGlob, relative, resolve } from "node:path";
import { test } from "node:test";
import { sentencesOf } from "./sentences.ts";
import { CHROMIUM, TOOLS } from "./tools.ts";

const root = resolve(import.meta.dirname, "..");
const documents = globSync(["*.md", "docs/**/*.md", "examples/*.md"], { cwd: root }).sort();
const texts = new Map(documents.map(path => [join(root, path), readFileSync(join(root, path), "utf8")]));

test("every link of the documents leads to a file and a heading that exist", () => {
  const problems = [...texts].flatMap(([file, text]) =>
    linksOf(text).flatMap(link => {
      const problem = problemOf(file, link);
      return problem === undefined ? [] : [`${relative(root, file)}: ${link}: ${problem}`];
    }),
  );
  assert.deepEqual(problems, []);
});

test("a link to a missing file or heading is found", () => {
  const file = join(root, "README.md");
  assert.equal(problemOf(file, "docs/missing.md"), "no such file");
  assert.equal(problemOf(file, "docs/concepts.md#missing"), "no such heading");
  assert.equal(problemOf(file, "https://example.org/"), undefined);
});

test("headings have the anchors that GitHub and the site give them", () => {
  const text = "# `docstokg run`: from *identifiers* to files\n## DOCSTOKG_BUSY\n## Same\n## Same\n## L1. Any window";
  assert.deepEqual(
    [...anchorsOf(text)],
    ["docstokg-run-from-identifiers-to-files", "docstokg_busy", "same", "same-1", "l1-any-window"],
  );
});

/** The targets of links and images, without code. */
function linksOf(text: string): readonly string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "");
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
}

function problemOf(file: string, link: string): string | undefined {
  if (/^[a-z]+:/.test(link)) return undefined;
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? file : resolve(dirname(file), path);
  if (!existsSync(target)) return "no such file";
  const text = texts.get(target);
  if (anchor === undefined || text === undefined) return undefined;
  return anchorsOf(text).has(anchor) ? undefined : "no such heading";
}

function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#{1,6} (.*)$/gm)) {
    const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*\\]/g, "");
    const slug = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-");
    let anchor = slug;
    for (let copy = 1; anchors.has(anchor); copy += 1) anchor = `${slug}-${copy}`;
    anchors.add(anchor);
  }
  return anchors;
}

test("sentences are counted without code, tables and headings, and code in a line is one word", () => {
  const text =
    "# A title\n\nOne two `three four`. Five [six](x.md) seven!\n\n| a | b |\n\n- item one\n- item two\n\n```ts\nconst a = 1;\n```\n";
  assert.deepEqual(
    sentencesOf(text).map(({ words }) => words),
    [3, 3, 2, 2],
  );
});

test("every link of the README leads to a file of the package", () => {
  const { files } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { files: readonly string[] };
  const shipped = (path: string) =>
    files.some(entry => path === entry || path.startsWith(`${entry}/`) || matchesGlob(path, entry));
  const links = linksOf(texts.get(join(root, "README.md")) ?? "").map(link => link.split("#")[0] ?? "");
  assert.ok(links.length > 20);
  assert.deepEqual(
    links.filter(link => !/^https?:/.test(link) && !shipped(link)),
    [],
  );
});

test("the README has at most one and a half screens of prose, at 50 lines of 120 characters each", () => {
  const text = (texts.get(join(root, "README.md")) ?? "").replace(/^```text[\s\S]*?^```$/gm, "");
  const prose = text.split("\n").filter(line => line.trim() !== "" && !line.startsWith("!["));
  const lines = prose.reduce((sum, line) => sum + Math.ceil(line.replace(/\]\([^)]*\)/g, "").length / 120), 0);
  assert.ok(lines <= 75, `${lines} lines`);
});

test("the README names the number of services that the reference lists", () => {
  const [readme, services] = ["README.md", "docs/reference/services.md"].map(path => texts.get(join(root, path)) ?? "");
  const [, count] = /for (\d+) hosts and services/.exec(services ?? "") ?? [];
  assert.ok(
    readme?.includes(`[Limits of ${count} hosts and services]`),
    `README.md: the package has limits of ${count}`,
  );
});

test("the workflow installs the tools without which tests are skipped, and CONTRIBUTING names them", () => {
  const workflow = readFileSync(join(root, ".github/workflows/ci.yml"), "utf8");
  const contributing = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
  for (const tool of TOOLS) {
    // The image of the workflow has a browser.
    if (tool !== CHROMIUM) assert.match(workflow, new RegExp(`apt-get install .*\\b${tool.debian}\\b`), tool.name);
    assert.ok(contributing.includes(`\`${tool.debian}\``), tool.name);
  }
});
