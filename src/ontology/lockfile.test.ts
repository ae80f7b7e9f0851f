import assert from "node:assert/strict";
import { appendFile, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { internetFor, projectFor } from "../../test/ontology/kit.ts";
import { outcomes } from "../../test/ontology/outcomes.ts";
import { formatLock, readLock } from "./lockfile.ts";
import { diffPlan } from "./plan-diff.ts";

const SOURCES =
  "ratelimit: { default: 100/second }\nsources:\n  finch: { resolver: ols }\n  fern: { resolver: bioregistry, target_formats: [json] }\n";

test("a frozen pull takes what the lockfile says, from the store without asking, or from where it was", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(t, internet, SOURCES);
  const [finch] = await project.pull();
  assert.ok(finch !== undefined && finch.outcome === "fetched");
  const before = await internet.ledger();
  assert.deepEqual(outcomes(await project.pull({ isFrozen: true })), { finch: "kept", fern: "kept" });
  assert.equal((await internet.ledger()).requests, before.requests);

  await rm(join(project.folder, "ontologies"), { recursive: true });
  assert.deepEqual(outcomes(await project.pull({ isFrozen: true })), { finch: "fetched", fern: "fetched" });
  const { hosts } = await internet.ledger();
  assert.equal(hosts["www.ebi.ac.uk"]?.requests, before.hosts["www.ebi.ac.uk"]?.requests);
});

test("a frozen pull fails where reality differs from the lockfile, and stores nothing", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(t, internet, SOURCES);
  await project.pull();
  const file = join(project.folder, "ontologies.lock.json");
  const text = await readFile(file, "utf8");
  const lock = new Map(await readLock(file));
  const fern = lock.get("fern");
  assert.ok(fern);
  await writeFile(file, formatLock(lock.set("fern", { ...fern, sha256: "0".repeat(64) })));
  const changed = outcomes(await project.pull({ isFrozen: true }));
  assert.match(
    changed["fern"] ?? "",
    /^it is not what the lockfile says: sha256 [0-9a-f]{12}… instead of 000000000000…$/,
  );
  assert.equal(changed["finch"], "kept");

  // Bytes that were changed on the disk are fetched again, whatever their manifest says.
  await writeFile(file, text);
  const stored = join(project.folder, "ontologies", "finch", lock.get("finch")?.version ?? "", "finch.ttl");
  const bytes = await readFile(stored);
  await writeFile(stored, Buffer.alloc(bytes.length, "x"));
  assert.equal(outcomes(await project.pull({ isFrozen: true }))["finch"], "fetched");
  assert.ok((await readFile(stored)).equals(bytes));

  await project.write(`${SOURCES.replace("[json]", "[json, owl]")}  moss: { resolver: lov }\n`);
  assert.deepEqual(outcomes(await project.pull({ isFrozen: true })), {
    finch: "kept",
    fern: "sources.yaml says something else than when it was locked",
    moss: "it is not in the lockfile",
  });
  await project.write("sources:\n  finch: { resolver: ols }\n");
  assert.deepEqual(outcomes(await project.pull({ isFrozen: true })), {
    finch: "kept",
    fern: "it is locked, and no source any more",
  });
  assert.equal(await readFile(file, "utf8"), text);
});

test("a lockfile that is damaged is not written over", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(t, internet, SOURCES);
  await project.pull();
  const file = join(project.folder, "ontologies.lock.json");
  await appendFile(file, "<<<<<<< ours\n");
  await assert.rejects(project.pull(), { code: "DOCSTOKG_CONFIG", message: /it is no JSON; restore it, or delete it/ });
  assert.match(await readFile(file, "utf8"), /<<<<<<< ours\n$/);
  await writeFile(file, '{"lockfile_version":1,"ontologies":{"x":{"sha256":"zz"}}}');
  await assert.rejects(project.pull(), { code: "DOCSTOKG_CONFIG", message: /ontologies\.x\./ });
  await writeFile(file, '{"lockfile_version":1,"ontologies":{"../x":{}}}');
  await assert.rejects(project.pull(), { code: "DOCSTOKG_CONFIG", message: /ontologies\.\.\.\/x/ });
});

test("some ids leave the others' entries alone; all of them drop what is no source any more", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(t, internet, SOURCES);
  const file = join(project.folder, "ontologies.lock.json");
  await project.pull({ ids: ["finch"] });
  assert.deepEqual([...(await readLock(file)).keys()], ["finch"]);
  await project.pull({ ids: ["fern"] });
  assert.deepEqual([...(await readLock(file)).keys()], ["fern", "finch"]);
  await project.write("sources:\n  fern: { resolver: bioregistry, target_formats: [json] }\n");
  await project.pull();
  assert.deepEqual([...(await readLock(file)).keys()], ["fern"]);
});

test("a plan says what it would fetch, with size and licence, and how that stands to the lockfile", async t => {
  const internet = await internetFor(t);
  const project = await projectFor(t, internet, SOURCES);
  const [finch, fern] = await project.plan();
  const known = internet.ontologies.find(({ id }) => id === "fern");
  const copy = known?.copies.find(({ format }) => format === "json");
  assert.ok(finch?.kind === "fetch" && fern?.kind === "fetch");
  assert.deepEqual(
    [fern.url, fern.format, fern.version, fern.licence, fern.bytes],
    [copy?.url, "json", known?.version, "CC-BY-4.0", copy?.bytes],
  );
  const file = join(project.folder, "ontologies.lock.json");
  const changes = async () =>
    diffPlan(await project.plan(), await readLock(file)).map(({ id, change }) => [id, change]);
  assert.deepEqual(await changes(), [
    ["finch", "added"],
    ["fern", "added"],
  ]);
  await project.pull();
  assert.deepEqual(await changes(), [
    ["finch", "same"],
    ["fern", "same"],
  ]);
  const lock = new Map(await readLock(file));
  const locked = lock.get("finch");
  assert.ok(locked);
  await writeFile(file, formatLock(lock.set("finch", { ...locked, etag: '"older"' }).set("moss", locked)));
  await project.write(SOURCES.replace("  fern:", "  nobody: { resolver: lov }\n  fern:"));
  assert.deepEqual(await changes(), [
    ["finch", "changed"],
    ["nobody", "unknown"],
    ["fern", "same"],
    ["moss", "removed"],
  ]);
});
