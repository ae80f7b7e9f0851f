import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { runIn } from "../../test/cli/kit.ts";
import { eventually } from "../../test/harvest/kit.ts";
import { s3For } from "../../test/harvest/s3-server.ts";
import { serve } from "../../test/http/kit.ts";
import { addText, storeContract } from "../../test/ontology/store-contract.ts";
import { ontofetch } from "../cli/ontofetch.ts";
import { sha256Of } from "../files/file-hash.ts";
import { connectS3 } from "../files/s3/s3-client.ts";
import { S3Folder } from "../files/s3/s3-folder.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { Ontofetch } from "./ontofetch.ts";
import { loadOntofetchSettings } from "./ontofetch-settings.ts";
import { S3OntologyStore } from "./s3-ontology-store.ts";

const STORE = "s3://papers/onto";
const HOUR_MS = 3_600_000;

const openFor = async (t: TestContext) => {
  const store = await S3OntologyStore.open(STORE, systemTime);
  t.after(() => store[Symbol.dispose]());
  return store;
};

storeContract("S3", async t => {
  const { s3, folder } = await s3For(t);
  s3.pageSize = 1;
  return {
    store: await openFor(t),
    folder,
    damage: ({ path }, text) =>
      s3.damage(path.replace("s3://papers/", ""), text === undefined ? "delete" : { bytes: text }),
  };
});

/** A project whose store is the bucket, a server with one ontology, and the program. */
async function projectInS3(t: TestContext, file: (version: string) => string = oboOf) {
  const { s3, folder } = await s3For(t);
  const state = { version: "2026-11-01" };
  const server = await serve(t, (request, response) => {
    const etag = `"${state.version}"`;
    if (request.headers["if-none-match"] === etag) response.writeHead(304, { etag }).end();
    else response.writeHead(200, { etag }).end(request.method === "HEAD" ? "" : file(state.version));
  });
  const sources = join(folder, "sources.yaml");
  const source = `x: { resolver: direct, extras: { url: "${server.origin}/x.obo" } }`;
  writeFileSync(sources, `store: ${STORE}\nallow_private: true\nsources:\n  ${source}\n`);
  const run = async (command: string) => {
    const { exitCode, stdout, stderr } = await runIn(ontofetch, [...command.split(" "), "--sources", sources]);
    return { exitCode, stdout, stderr };
  };
  return { s3, folder, server, state, sources, run };
}

function oboOf(version: string): string {
  return `format-version: 1.2\ndata-version: releases/${version}\nontology: x\n\n[Term]\nid: X:1\nname: ${version}\n`;
}

const folderOf = (version: string, text = oboOf(version)) => `onto/x/${version}+${sha256Of(text).slice(0, 32)}`;

test("every command works on a store in S3, and nothing of it is written beside sources.yaml", async t => {
  const { s3, folder, server, state, run } = await projectInS3(t);
  const first = folderOf("2026-11-01");
  assert.match((await run("pull")).stdout, /^x: fetched, version 2026-11-01, obo/);
  assert.deepEqual(s3.keys(), [`${first}/manifest.json`, `${first}/x.obo`]);
  assert.equal(s3.bytesOf(`${first}/x.obo`).toString(), oboOf("2026-11-01"));
  assert.match((await run("pull")).stdout, /^x: unchanged/);
  state.version = "2026-12-01";
  assert.match((await run("pull")).stdout, /^x: fetched, version 2026-12-01/);

  const requests = server.requests.length;
  assert.match((await run("pull --frozen")).stdout, /^x: .*version 2026-12-01/);
  const shown = JSON.parse((await run("show --json")).stdout);
  assert.deepEqual(
    shown.versions.map(({ version, path, isLocked }: Record<string, unknown>) => [version, path, isLocked]),
    [
      ["2026-12-01", `s3://papers/${folderOf("2026-12-01")}/x.obo`, true],
      ["2026-11-01", `s3://papers/${first}/x.obo`, false],
    ],
  );
  const { stdout: path } = await run("path x@2026-11-01");
  assert.equal(readFileSync(path.trim(), "utf8"), oboOf("2026-11-01"));
  assert.match((await run("diff x@2026-11-01 x")).stdout, /X.1 .*2026-11-01 -> 2026-12-01/);
  assert.match((await run("export x --format nodes-edges")).stdout, /"label":"2026-12-01"/);
  assert.equal((await run("validate")).stdout, "x 2026-12-01: valid\nx 2026-11-01: valid\n");
  assert.match((await run("doctor")).stdout, /store +ok +s3:\/\/papers\/onto/);
  assert.match(
    (await run("rl doctor")).stdout,
    /^rate limits are shared by processes of this machine with the store s3:/,
  );
  assert.equal(server.requests.length, requests);

  assert.match((await run("prune --keep 1")).stdout, /^x 2026-11-01: removed/);
  assert.deepEqual(s3.keys(), [`${folderOf("2026-12-01")}/manifest.json`, `${folderOf("2026-12-01")}/x.obo`]);
  assert.equal(existsSync(path.trim()), false);
  await s3.damage(`${folderOf("2026-12-01")}/x.obo`, { bytes: "format-version: 1.2\n" });
  const damaged = await run("validate");
  assert.equal(damaged.exitCode, 1);
  assert.match(damaged.stderr, /^x 2026-12-01: content changed: sha256 is /);
  for (const name of ["ontologies", "s3:"]) assert.equal(existsSync(join(folder, name)), false);
});

test("kill -9 in the middle of an upload leaves no version, and the next pull stores it", async t => {
  // Two parts.
  const large = `${oboOf("2026-11-01")}${"! a comment of 32 characters ....\n".repeat(280_000)}`;
  const { s3, folder, run } = await projectInS3(t, () => large);
  s3.hold = request => request.includes("partNumber=2");
  const program = join(import.meta.dirname, "..", "..", "test", "ontology", "pull-process.ts");
  const killed = spawn(process.execPath, [program, folder, "{}"], { stdio: "ignore" });
  t.after(() => killed.kill("SIGKILL"));
  await eventually(() => s3.requests.some(request => request.includes("partNumber=2")));
  killed.kill("SIGKILL");
  await once(killed, "exit");
  assert.deepEqual(s3.keys(), []);
  assert.equal((await run("show")).stdout, "");
  s3.hold = () => false;
  s3.uploadAgeMs = 24 * HOUR_MS + 1000;
  const pulled = await run("pull");
  assert.match(pulled.stdout, /^x: fetched, version 2026-11-01/, pulled.stderr);
  assert.deepEqual(s3.uploads(), []);
  assert.equal(s3.bytesOf(`${folderOf("2026-11-01", large)}/x.obo`).toString(), large);
});

test("a file without its manifest is no version, and is removed when no pull can be writing it", async t => {
  const { s3, folder } = await s3For(t);
  const time = new FakeTime({ wallMs: Date.now() });
  const store = await S3OntologyStore.open(STORE, time);
  t.after(() => store[Symbol.dispose]());
  const version = await addText({ store, folder }, "one");
  await s3.damage(`onto/hp/${version.folder}/manifest.json`, "delete");
  assert.deepEqual([await store.versions("hp"), await store.foldersWithoutManifest("hp")], [[], []]);
  await store.removeLeftovers("hp");
  assert.equal(s3.keys().length, 1);
  await time.advance(25 * HOUR_MS);
  assert.deepEqual(await store.foldersWithoutManifest("hp"), [version.folder]);
  await store.removeLeftovers("hp");
  assert.deepEqual(s3.keys(), []);
});

test("objects and uploads of other programs in the same bucket are never deleted", async t => {
  const { s3 } = await s3For(t);
  const time = new FakeTime({ wallMs: Date.now() });
  const store = await S3OntologyStore.open(STORE, time);
  const bucket = await S3Folder.open(STORE, "store");
  const { client, module } = await connectS3("store");
  t.after(() => {
    store[Symbol.dispose]();
    bucket.close();
    client.destroy();
  });
  const digits = "0123456789abcdef".repeat(2);
  const paths = [
    "backup/2026/monday.tar",
    "backup/2026/db/a.tar",
    `backup/2026+${digits}/a.tar`,
    "photos/summer/a.jpg",
  ];
  for (const path of paths) await bucket.writeText(path, "theirs");
  await client.send(new module.CreateMultipartUploadCommand({ Bucket: "papers", Key: "onto/backup/database.tar" }));
  s3.uploadAgeMs = 48 * HOUR_MS;
  await time.advance(48 * HOUR_MS);
  await store.prepare();
  assert.deepEqual(await store.ids(), ["backup"]);
  for (const id of ["backup", "photos"]) await store.removeLeftovers(id);
  assert.deepEqual(s3.keys(), paths.map(path => `onto/${path}`).sort());
  assert.equal(s3.uploads().length, 1);
});

test("two machines that store different bytes of one version at the same time both keep theirs", async t => {
  const { s3, folder } = await s3For(t);
  const stores = [await openFor(t), await openFor(t)];
  const texts = ["one", "two"];
  await Promise.all(stores.map((store, index) => addText({ store, folder }, texts[index] ?? "")));
  for (const store of stores)
    for (const text of texts) {
      const version = await store.findByHash("hp", sha256Of(text));
      assert.equal(version?.manifest.sha256, sha256Of(text));
      assert.equal(s3.bytesOf(version?.path.replace("s3://papers/", "") ?? "").toString(), text);
    }
});

test("a copy on this machine has the bytes of the manifest, or there is none", async t => {
  const { s3, folder } = await s3For(t);
  const store = await openFor(t);
  const version = await addText({ store, folder }, "one");
  await s3.damage(version.path.replace("s3://papers/", ""), { bytes: "two" });
  await assert.rejects(store.localFile(version), /s3:\/\/papers\/onto\/hp\/.* has changed: sha256 is /);
  await s3.damage(version.path.replace("s3://papers/", ""), "delete");
  await assert.rejects(store.localFile(version), /s3:\/\/papers\/onto\/hp\/.*\/hp\.obo is missing/);
  await addText({ store, folder }, "one");
  assert.equal(readFileSync(await store.localFile(version), "utf8"), "one");
});

test("a draft of a killed copy is removed when no process can be writing it", async t => {
  const { folder } = await s3For(t);
  const time = new FakeTime({ wallMs: Date.now() });
  const store = await S3OntologyStore.open(STORE, time);
  t.after(() => store[Symbol.dispose]());
  const version = await addText({ store, folder }, "one");
  const copy = await store.localFile(version);
  const draft = `${copy}.0a1b2c3d.tmp`;
  writeFileSync(draft, "on");
  await store.removeLeftovers("hp");
  assert.deepEqual([existsSync(copy), existsSync(draft)], [true, true]);
  await time.advance(25 * HOUR_MS);
  await store.removeLeftovers("hp");
  assert.deepEqual([existsSync(copy), existsSync(draft)], [true, false]);
});

test("a hub that cannot be opened leaves no connection to the bucket open", async t => {
  const { folder } = await s3For(t);
  const close = t.mock.method(S3Folder.prototype, "close");
  const file = join(folder, "file");
  writeFileSync(file, "");
  const sources = join(folder, "sources.yaml");
  writeFileSync(sources, `store: ${STORE}\nratelimit: { shared_dir: ${file} }\nsources: {}\n`);
  const settings = await loadOntofetchSettings({ sources }, {}, folder);
  await assert.rejects(Ontofetch.open(settings, { env: {} }), /cannot create the folder \(EEXIST\)/);
  assert.equal(close.mock.callCount(), 1);
});

test("a bucket that does not exist is an error before the first request", async t => {
  const { server, sources, run } = await projectInS3(t);
  writeFileSync(sources, readFileSync(sources, "utf8").replace(STORE, "s3://other-bucket/x"));
  const { exitCode, stderr } = await run("pull");
  assert.deepEqual(
    [exitCode, stderr],
    [2, "ontofetch: store: cannot use s3://other-bucket/x: there is no bucket other-bucket\n"],
  );
  assert.match((await run("doctor")).stdout, /store +problem +cannot use s3:\/\/other-bucket\/x: there is no bucket/);
  assert.equal(server.requests.length, 0);
});
