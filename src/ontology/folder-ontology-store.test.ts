import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { projectAt } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { storeContract } from "../../test/ontology/store-contract.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { FolderOntologyStore } from "./folder-ontology-store.ts";

const OBO = "format-version: 1.2\nontology: x\n\n[Term]\nid: X:1\nname: one\n";

test("the next pull deletes the draft of a killed process", async t => {
  const { project } = await projectAt(t, (_, response) => response.end(OBO));
  const draft = join(project.folder, "ontologies", ".ontofetch", "drafts", "x");
  mkdirSync(draft, { recursive: true });
  writeFileSync(join(draft, "half.obo"), OBO);
  assert.deepEqual(outcomes(await project.pull()), { x: "fetched" });
  const [version = ""] = readdirSync(join(project.folder, "ontologies", "x"));
  assert.deepEqual(readdirSync(join(project.folder, "ontologies", "x", version)).sort(), ["manifest.json", "x.obo"]);
  assert.equal(existsSync(draft), false);
});

test("a store whose path is a file is an error with the path", async () => {
  const file = join(temporaryFolder("ontologies"), "file");
  writeFileSync(file, "");
  const problem = (path: string) => ({
    name: "ConfigError",
    message: `${path}: is not a folder; expected the folder of an ontology store`,
  });
  await assert.rejects(new FolderOntologyStore(file).ids(), problem(file));
  await assert.rejects(new FolderOntologyStore(file).versions("x"), problem(join(file, "x")));
});

test("a folder whose name is no id is not an ontology of the store", async () => {
  const root = temporaryFolder("ontologies");
  for (const name of ["hp", "lost+found", ".ontofetch", "HP"]) mkdirSync(join(root, name), { recursive: true });
  assert.deepEqual(await new FolderOntologyStore(root).ids(), ["hp"]);
});

storeContract("folder", async () => {
  const folder = temporaryFolder("ontologies");
  const damage = async ({ path }: { readonly path: string }, text: string | undefined) =>
    text === undefined ? rmSync(path) : writeFileSync(path, text);
  return { store: new FolderOntologyStore(join(folder, "store")), folder, damage };
});
