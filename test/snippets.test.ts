import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";

/**
 * Every `ts` block of the documents runs as a program against the built package.
 * A `text` block directly after it is its exact output.
 */
const root = resolve(import.meta.dirname, "..");
// The tutorial's files belong together: test/tutorial.test.ts runs them.
const documents = globSync(["*.md", "docs/**/*.md"], { cwd: root })
  .filter(path => path !== "docs/tutorial.md")
  .sort();
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

/** A `sh` block that starts with `$ npx docstokg …` shows the output of the command; `…` stands for omitted lines. */
const sessions = documents.flatMap(document => {
  const blocks = readFileSync(join(root, document), "utf8").matchAll(/^```sh\n\$ npx docstokg (.*?)\n(.*?)^```$/gms);
  return [...blocks].map(([, command = "", output = ""]) => ({ document, command, lines: output.split("\n") }));
});

for (const { document, command, lines } of sessions) {
  test(`${document}: docstokg ${command} prints the lines shown`, () => {
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
  test(`${name} runs and prints the documented output`, () => {
    const args = ["--input-type=module-typescript", "--disable-warning=ExperimentalWarning", "--eval", code];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    if (output !== undefined) assert.equal(stdout, output);
  });
}
