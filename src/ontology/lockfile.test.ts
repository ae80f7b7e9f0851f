import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { internetFor, projectFor } from "../../test/ontology/kit.ts";
import { readLock } from "./lockfile.ts";

const SOURCES =
  "ratelimit: { default: 100/second }\nsources:\n  finch: { resolver: ols }\n  fern: { resolver: bioregistry, target_formats: [json] }\n";

test("a damaged lockfile is an error and is not overwritten", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, SOURCES);
  await project.pull();
  const file = join(project.folder, "ontologies.lock.json");
  await appendFile(file, "<<<<<<< ours\n");
  await assert.rejects(project.pull(), {
    code: "DOCSTOKG_CONFIG",
    message: /not valid JSON; restore the lockfile, or delete it/,
  });
  assert.match(await readFile(file, "utf8"), /<<<<<<< ours\n$/);
  await writeFile(file, '{"lockfile_version":1,"ontologies":{"x":{"sha256":"zz"}}}');
  await assert.rejects(project.pull(), { code: "DOCSTOKG_CONFIG", message: /ontologies\.x\./ });
  await writeFile(file, '{"lockfile_version":1,"ontologies":{"../x":{}}}');
  await assert.rejects(project.pull(), { code: "DOCSTOKG_CONFIG", message: /ontologies\.\.\.\/x/ });
});

test("a pull of some ids keeps the other entries of the lockfile; a pull of all drops those not in sources.yaml", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, SOURCES);
  const file = join(project.folder, "ontologies.lock.json");
  await project.pull({ ids: ["finch"] });
  assert.deepEqual([...(await readLock(file)).keys()], ["finch"]);
  await project.pull({ ids: ["fern"] });
  assert.deepEqual([...(await readLock(file)).keys()], ["fern", "finch"]);
  await project.write("sources:\n  fern: { resolver: bioregistry, target_formats: [json] }\n");
  await project.pull();
  assert.deepEqual([...(await readLock(file)).keys()], ["fern"]);
});
