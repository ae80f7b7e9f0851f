import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

/**
 * Every `ts` block of the documents is run as a program of its own, against the built package, as a reader would.
 * A `text` block right behind it is what it prints, to the letter.
 */
const root = resolve(import.meta.dirname, "..");
const documents = globSync(["*.md", "docs/**/*.md"], { cwd: root }).sort();
const snippets = documents.flatMap(document => {
  const blocks = readFileSync(join(root, document), "utf8").matchAll(
    /^```ts\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?/gms,
  );
  return [...blocks].map(([, code = "", output], index) => ({
    name: `${document}, snippet ${index + 1}`,
    code,
    output,
  }));
});

/** A `sh` block that begins with `$ npx docstokg …` shows what that prints, `…` standing for what is left out. */
const sessions = documents.flatMap(document => {
  const blocks = readFileSync(join(root, document), "utf8").matchAll(/^```sh\n\$ npx docstokg (.*?)\n(.*?)^```$/gms);
  return [...blocks].map(([, command = "", output = ""]) => ({ document, command, lines: output.split("\n") }));
});

for (const { document, command, lines } of sessions) {
  test(`${document}: docstokg ${command} prints what is shown`, () => {
    const { stdout } = spawnSync(process.execPath, [join(root, "bin/docstokg.cjs"), ...command.split(" ")], {
      encoding: "utf8",
    });
    const printed = stdout.split("\n");
    for (const line of lines) if (line !== "…" && line !== "") assert.ok(printed.includes(line), line);
  });
}

test("the README has a snippet to run", () => {
  assert.ok(snippets.some(({ name }) => name.startsWith("README.md")));
});

for (const { name, code, output } of snippets) {
  test(`${name} runs and prints what the document says`, () => {
    const args = ["--input-type=module-typescript", "--disable-warning=ExperimentalWarning", "--eval", code];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    if (output !== undefined) assert.equal(stdout, output);
  });
}
