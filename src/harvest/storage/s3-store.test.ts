import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { complete, eventually, indexAt, pdf, runFor, sha256, workCalled } from "../../../test/harvest/kit.ts";
import { s3For } from "../../../test/harvest/s3-server.ts";
import { hubFor, serve } from "../../../test/http/kit.ts";
import { connectS3 } from "../../files/s3/s3-client.ts";
import { parseS3Url } from "../../files/s3/s3-url.ts";
import { systemTime } from "../../time/system-time.ts";
import { fileStoreFor } from "./file-store.ts";

const OUT = "s3://papers/harvest/2026";
/** Two parts. */
const LARGE_BYTES = 8 * 2 ** 20 + 1000;

const keyOf = (bytes: Buffer, extension = "pdf") => {
  const hash = sha256(bytes);
  return `harvest/2026/sha256/${hash.slice(0, 2)}/${hash.slice(2)}.${extension}`;
};

/** A server with an index that names `/files/<name>` for each work, and the files. */
function publisher(t: TestContext, files: Readonly<Record<string, Buffer>>) {
  return serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/${name}`, kind: "pdf" }]));
    else response.setHeader("etag", `"${name}"`).end(files[name]);
  });
}

test("files are in the bucket under their hashes, with their type, and equal bytes are there once", async t => {
  const { s3, folder } = await s3For(t);
  const files = { a: pdf("a"), b: pdf("b"), same: pdf("a"), large: pdf("large", LARGE_BYTES) };
  const server = await publisher(t, files);
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)], folder: OUT, metadata: "json" } as const;
  const made = await runFor(t, folder, options);
  const works = Object.keys(files).map(workCalled);
  await complete(made, works);
  for (const reason of made.settled.values()) assert.ok(reason === "ok" || reason === "duplicate", reason);
  const pdfs = s3.keys().filter(key => key.endsWith(".pdf"));
  assert.deepEqual(pdfs, [keyOf(files.a), keyOf(files.b), keyOf(files.large)].sort());
  for (const bytes of [files.a, files.b, files.large]) {
    assert.deepEqual(s3.bytesOf(keyOf(bytes)), bytes);
    const metadata = s3.metadataOf(keyOf(bytes));
    assert.equal(metadata["content-type"], "application/pdf");
    assert.equal(metadata["x-amz-meta-sha256"], sha256(bytes));
  }
  assert.equal(s3.requests.filter(request => request.includes("partNumber=")).length, 2);
  assert.deepEqual(s3.uploads(), []);
  // Equal bytes have one object, and each work has its metadata.
  const metadataKeys = s3.keys().filter(key => key.endsWith(".json"));
  const described = metadataKeys.map(key => JSON.parse(s3.bytesOf(key).toString()).key);
  assert.deepEqual(described.sort(), works.map(({ key }) => key).sort());
  for (const bytes of Object.values(files))
    assert.ok(metadataKeys.some(key => key.startsWith(keyOf(bytes, "").slice(0, -1))));
  assert.deepEqual(
    readdirSync(join(folder, "docstokg", "parts"), { recursive: true, encoding: "utf8" }).filter(name =>
      name.endsWith(".part"),
    ),
    [],
  );
  const again = await runFor(t, folder, options);
  assert.deepEqual(await again.run.addWorks(works), { pending: 0, present: 4, failed: 0, failedIds: [] });
});

test("damage of objects is found by their bytes, and a changed object can be set aside", async t => {
  const { s3, folder } = await s3For(t);
  const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
  t.after(() => store.close());
  await store.prepare();
  const bytes = pdf("a");
  const file = { path: `sha256/${sha256(bytes).slice(0, 2)}/${sha256(bytes).slice(2)}.pdf`, bytes: bytes.length };
  const stored = { ...file, sha256: sha256(bytes) };
  const add = async () => {
    writeFileSync(store.parts.pathOf("1.part"), bytes);
    await store.store({ ...stored, part: "1.part", mediaType: "application/pdf" });
  };
  assert.equal(await store.has(file), false);
  assert.equal(await store.damageOf(stored), "missing");
  await add();
  assert.equal(store.parts.bytesOf("1.part"), 0);
  assert.deepEqual([await store.has(file), await store.damageOf(stored)], [true, undefined]);
  // May be repeated after a crash, when the partial file is gone.
  await store.store({ ...stored, part: "1.part", mediaType: "application/pdf" });
  await s3.damage(keyOf(bytes), { bytes: "x".repeat(bytes.length) });
  assert.equal(await store.damageOf(stored), "changed");
  await store.setAside(file.path);
  assert.deepEqual(s3.keys(), [`${keyOf(bytes)}.changed`]);
  await add();
  assert.equal(await store.damageOf(stored), undefined);
  await s3.damage(keyOf(bytes), "delete");
  await assert.rejects(
    store.store({ ...stored, part: "1.part", mediaType: "application/pdf" }),
    /1\.part is gone, and sha256\/.* is not in s3:\/\/papers\/harvest\/2026\//,
  );
});

test("each changed copy of an object that is set aside is kept, with a number from the second on", async t => {
  const { s3, folder } = await s3For(t);
  const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
  t.after(() => store.close());
  await store.prepare();
  const bytes = pdf("a");
  const path = keyOf(bytes).slice("harvest/2026/".length);
  for (const damage of ["first", "second", "third"]) {
    writeFileSync(store.parts.pathOf("1.part"), bytes);
    await store.store({ path, sha256: sha256(bytes), part: "1.part", mediaType: "application/pdf" });
    await s3.damage(keyOf(bytes), { bytes: damage });
    await store.setAside(path);
  }
  const aside = ["changed", "changed-2", "changed-3"].map(ending => `${keyOf(bytes)}.${ending}`);
  assert.deepEqual(s3.keys(), aside);
  assert.deepEqual(
    aside.map(key => s3.bytesOf(key).toString()),
    ["first", "second", "third"],
  );
});

const CHILD = `
  const [folder, origin] = process.argv.slice(1);
  const { harvest } = await import("${new URL("../../harvest.ts", import.meta.url)}");
  const { createHub } = await import("${new URL("../../index.ts", import.meta.url)}");
  const hub = await createHub({ retry: false, network: { allowPrivate: true } });
  const resolver = {
    name: "index",
    needs: [],
    requestFor: () => ({ url: origin + "/index/large", role: "metadata" }),
    parse: ({ body }) => ({ kind: "found", candidates: JSON.parse(body) }),
  };
  const options = { folder: "${OUT}", manifest: folder + "/m.sqlite", hub, resolvers: [resolver] };
  for await (const { reason } of harvest(["10.5555/large"], options)) console.log(reason);
  await hub.destroy();
`;

test("kill -9 in the middle of an upload leaves no object, and the next run uploads the file and removes the rest", async t => {
  const { s3, folder } = await s3For(t);
  const bytes = pdf("large", LARGE_BYTES);
  const server = await publisher(t, { large: bytes });
  const start = () => {
    const args = ["--input-type=module", "-e", CHILD, folder, server.origin];
    const child = spawn(process.execPath, args, { env: process.env, stdio: ["ignore", "pipe", "inherit"] });
    t.after(() => child.kill("SIGKILL"));
    return child;
  };
  s3.hold = request => request.includes("partNumber=2");
  const first = start();
  await eventually(() => s3.requests.some(request => request.includes("partNumber=2")));
  first.kill("SIGKILL");
  await once(first, "close");
  assert.deepEqual(s3.keys(), []);
  assert.equal(s3.uploads().length, 1);

  s3.hold = () => false;
  s3.uploadAgeMs = 25 * 3_600_000;
  const downloads = server.requests.filter(({ url }) => url === "/files/large").length;
  const second = start();
  const [code] = await once(second, "close");
  assert.equal(code, 0);
  assert.deepEqual(s3.keys(), [keyOf(bytes)]);
  assert.deepEqual(s3.bytesOf(keyOf(bytes)), bytes);
  assert.deepEqual(s3.uploads(), []);
  // The complete partial file was uploaded, and not downloaded again.
  assert.equal(server.requests.filter(({ url }) => url === "/files/large").length, downloads);
});

test("a run that is stopped aborts its upload, and the next run stores the file without another download", async t => {
  const { s3, folder } = await s3For(t);
  const bytes = pdf("large", LARGE_BYTES);
  const server = await publisher(t, { large: bytes });
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)], folder: OUT } as const;
  s3.hold = request => request.includes("partNumber=2");
  const first = await runFor(t, folder, options);
  await first.run.addWorks([workCalled("large")]);
  first.run.pipeline.inputEnded();
  const running = first.run.pipeline.run();
  await eventually(() => s3.requests.some(request => request.includes("partNumber=2")));
  first.run.stop();
  await running;
  await first.run.close("interrupted");
  assert.deepEqual([s3.keys(), s3.uploads()], [[], []]);
  s3.hold = () => false;
  const second = await runFor(t, folder, options);
  assert.equal(second.run.recovered, 1);
  assert.deepEqual(s3.bytesOf(keyOf(bytes)), bytes);
  assert.equal(server.requests.filter(({ url }) => url?.startsWith("/files/")).length, 1);
});

test("an upload that another process may still send is not removed", async t => {
  const { s3, folder } = await s3For(t);
  const { client, module } = await connectS3("--out");
  await client.send(new module.CreateMultipartUploadCommand({ Bucket: "papers", Key: keyOf(pdf("x")) }));
  client.destroy();
  const prepare = async () => {
    const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
    await store.prepare();
    store.close();
  };
  s3.uploadAgeMs = 23 * 3_600_000;
  await prepare();
  assert.equal(s3.uploads().length, 1);
  s3.uploadAgeMs = 25 * 3_600_000;
  await prepare();
  assert.equal(s3.uploads().length, 0);
});

test("an old upload of another program in the same bucket is not removed", async t => {
  const { s3, folder } = await s3For(t);
  const { client, module } = await connectS3("--out");
  await client.send(new module.CreateMultipartUploadCommand({ Bucket: "papers", Key: "harvest/2026/database.tar" }));
  client.destroy();
  s3.uploadAgeMs = 48 * 3_600_000;
  const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
  t.after(() => store.close());
  await store.prepare();
  assert.equal(s3.uploads().length, 1);
});

test("a request to a service that does not answer ends when the store is stopped", async t => {
  const { s3, folder } = await s3For(t);
  const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
  t.after(() => store.close());
  s3.hold = request => request.startsWith("HEAD");
  const pending = store.has({ path: "sha256/a.pdf", bytes: 1 });
  await eventually(() => s3.requests.some(s3.hold));
  store.stop();
  await assert.rejects(pending, /cannot read s3:\/\/papers\/harvest\/2026\/sha256\/a\.pdf/);
});

test("credentials that may list but not abort uploads can store files, and abandoned uploads stay", async t => {
  const { s3, folder } = await s3For(t);
  const { client, module } = await connectS3("--out");
  for (const Key of [keyOf(pdf("x")), keyOf(pdf("y"))])
    await client.send(new module.CreateMultipartUploadCommand({ Bucket: "papers", Key }));
  client.destroy();
  s3.uploadAgeMs = 25 * 3_600_000;
  s3.deny = request => request.startsWith("DELETE") && request.includes("uploadId=");
  const store = await fileStoreFor(OUT, join(folder, "m.sqlite"), systemTime);
  t.after(() => store.close());
  await store.prepare();
  assert.equal(s3.uploads().length, 2);
  assert.equal(s3.requests.filter(s3.deny).length, 1);
});

test("an upload whose last reply is lost is complete, and is not sent again", async t => {
  const { s3, folder } = await s3For(t);
  const bytes = pdf("large", LARGE_BYTES);
  const server = await publisher(t, { large: bytes });
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)], folder: OUT } as const;
  const completions = () => s3.requests.filter(request => request.startsWith("POST") && request.includes("uploadId="));
  s3.losesReply = request => completions().length === 1 && request === completions()[0];
  const made = await runFor(t, folder, options);
  await complete(made, [workCalled("large")]);
  assert.deepEqual([...made.settled.values()], ["ok"]);
  assert.equal(completions().length, 2);
  assert.equal(s3.requests.filter(request => request.includes("partNumber=1")).length, 1);
  assert.deepEqual(s3.bytesOf(keyOf(bytes)), bytes);
});

test("an upload that is gone without an object is an error", async t => {
  const { s3, folder } = await s3For(t);
  const server = await publisher(t, { large: pdf("large", LARGE_BYTES) });
  const options = { hub: await hubFor(t), resolvers: [indexAt(server.origin)], folder: OUT } as const;
  s3.hold = request => {
    if (request.startsWith("POST") && request.includes("uploadId=")) s3.abortAll();
    return false;
  };
  const made = await runFor(t, folder, options);
  await assert.rejects(complete(made, [workCalled("large")]), /cannot write s3:\/\/papers\/harvest\/2026\/sha256\//);
  assert.deepEqual(s3.keys(), []);
});

test("a bucket that does not exist ends the run before the first request, with its name", async t => {
  const { folder } = await s3For(t);
  const server = await publisher(t, {});
  await assert.rejects(
    runFor(t, folder, { hub: await hubFor(t), resolvers: [indexAt(server.origin)], folder: "s3://other-bucket/x" }),
    /cannot use s3:\/\/other-bucket\/x\/ for files: there is no bucket other-bucket/,
  );
  assert.equal(server.requests.length, 0);
});

test("an S3 URL has a bucket and a prefix, and nothing else", () => {
  assert.deepEqual(parseS3Url("s3://papers", "--out"), { bucket: "papers", prefix: "" });
  assert.deepEqual(parseS3Url("s3://papers/a//b/", "--out"), { bucket: "papers", prefix: "a/b/" });
  for (const wrong of ["s3:papers", "s3:///a", "s3://key:secret@papers/a", "s3://papers/../a", "s3://P_q/a", "s3://a"])
    assert.throws(() => parseS3Url(wrong, "--out"), /--out: /, wrong);
});
