import assert from "node:assert/strict";
import { test } from "node:test";
import { projectAt } from "../../test/ontology/kit.ts";
import { exportVersion, type VersionExportFormat } from "./version-export.ts";

const SCOPES = ["EXACT", "RELATED", "NARROW", "BROAD"];

test("synonyms keep their scope in obographs, and are plain texts in nodes and edges", async t => {
  const lines = SCOPES.map(scope => `synonym: "${scope}" ${scope} []\n`).join("");
  const { project } = await projectAt(t, (_, response) => {
    response.end(`format-version: 1.2\ndata-version: 1\nontology: x\n\n[Term]\nid: X:1\nname: one\n${lines}`);
  });
  const [result] = await project.pull();
  assert.ok(result !== undefined && result.outcome !== "failed", JSON.stringify(result));
  const exported = async (format: VersionExportFormat) => {
    let text = "";
    await exportVersion(result.stored, format, async part => {
      text += part;
    });
    return text;
  };
  const [node] = JSON.parse(await exported("obographs")).graphs[0].nodes;
  assert.deepEqual(
    node.meta.synonyms.map(({ pred, val }: { pred: string; val: string }) => [pred, val]),
    SCOPES.map(scope => [`has${scope.charAt(0)}${scope.slice(1).toLowerCase()}Synonym`, scope]),
  );
  assert.deepEqual(JSON.parse((await exported("nodes-edges")).split("\n")[0] ?? "").synonyms, SCOPES);
});
