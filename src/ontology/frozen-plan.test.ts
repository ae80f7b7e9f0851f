import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { internetFor, projectFor } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { planFromLock } from "./frozen-plan.ts";
import { formatLock, readLock } from "./lockfile.ts";

const SOURCES =
  "ratelimit: { default: 100/second }\nsources:\n  finch: { resolver: ols }\n  fern: { resolver: bioregistry, target_formats: [json] }\n";

test("a frozen pull uses the stored file without a request, or downloads it from the locked URL", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, SOURCES);
  const [finch] = await project.pull();
  assert.ok(finch !== undefined && finch.outcome === "fetched");
  const before = await internet.ledger();
  assert.deepEqual(outcomes(await project.pull({ frozen: true })), { finch: "kept", fern: "kept" });
  assert.equal((await internet.ledger()).requests, before.requests);

  await rm(join(project.folder, "ontologies"), { recursive: true });
  assert.deepEqual(outcomes(await project.pull({ frozen: true })), { finch: "fetched", fern: "fetched" });
  const { hosts } = await internet.ledger();
  assert.equal(hosts["www.ebi.ac.uk"]?.requests, before.hosts["www.ebi.ac.uk"]?.requests);
});

test("a frozen pull fails for a source that differs from the lockfile, and stores nothing for it", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(internet, SOURCES);
  await project.pull();
  const file = join(project.folder, "ontologies.lock.json");
  const text = await readFile(file, "utf8");
  const lock = new Map(await readLock(file));
  const fern = lock.get("fern");
  assert.ok(fern);
  await writeFile(file, formatLock(lock.set("fern", { ...fern, sha256: "0".repeat(64) })));
  const changed = outcomes(await project.pull({ frozen: true }));
  assert.match(changed["fern"] ?? "", /^sha256 differs from the lockfile: [0-9a-f]{12}…, expected 000000000000…$/);
  assert.equal(changed["finch"], "kept");

  // A file that was damaged on disk is downloaded again, although its manifest is unchanged.
  await writeFile(file, text);
  const stored = join(project.folder, "ontologies", "finch", lock.get("finch")?.version ?? "", "finch.ttl");
  const bytes = await readFile(stored);
  await writeFile(stored, Buffer.alloc(bytes.length, "x"));
  assert.equal(outcomes(await project.pull({ frozen: true }))["finch"], "fetched");
  assert.ok((await readFile(stored)).equals(bytes));

  await project.write(`${SOURCES.replace("[json]", "[json, owl]")}  moss: { resolver: lov }\n`);
  assert.deepEqual(outcomes(await project.pull({ frozen: true })), {
    finch: "kept",
    fern: "target_formats in sources.yaml is json, owl, but json in the lockfile (run ontofetch pull without --frozen)",
    moss: "not in the lockfile (run ontofetch pull without --frozen)",
  });
  await project.write("sources:\n  finch: { resolver: ols }\n");
  assert.deepEqual(outcomes(await project.pull({ frozen: true })), {
    finch: "kept",
    fern: "in the lockfile, but not in sources.yaml (run ontofetch pull without --frozen)",
  });
  assert.equal(await readFile(file, "utf8"), text);
});

test("a frozen plan names a resolver of the lockfile that this version does not have", async t => {
  const project = await projectFor(await internetFor(t), SOURCES);
  await project.pull();
  const lock = await readLock(join(project.folder, "ontologies.lock.json"));
  const source = { id: "finch", resolver: "newer", targetFormats: [], extras: {} };
  const [item] = planFromLock([source], lock);
  assert.match(
    item?.kind === "refused" ? item.message : "",
    /^unknown resolver "newer" in the lockfile; expected obo, /,
  );
});
