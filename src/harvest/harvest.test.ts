import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { eventually, indexAt, pdf } from "../../test/harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../../test/harvest/postgres-server.ts";
import { s3For } from "../../test/harvest/s3-server.ts";
import { hubFor, serve } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { type HarvestResult, harvest } from "./harvest.ts";
import type { HarvestOptions } from "./harvest-options.ts";
import type { FileStorage } from "./storage/file-storage.ts";

function origin(t: Parameters<typeof serve>[0]) {
  return serve(t, (request, response) => {
    const name = request.url?.split("/").at(-1) ?? "";
    if (name === "closed")
      response.end(JSON.stringify({ kind: "none", reason: "not-open", metadata: { title: "Closed" } }));
    else if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/${name}`, kind: "pdf" }]));
    else response.end(pdf(name));
  });
}

test("harvest yields a result for each work, with its files and metadata, and continues a manifest", async t => {
  const server = await origin(t);
  const options = {
    folder: temporaryFolder("harvest"),
    hub: await hubFor(t, { retry: false }),
    resolvers: [indexAt(server.origin)],
  };
  const results: HarvestResult[] = [];
  for await (const result of harvest(["10.5555/a", "doi:10.5555/b", "10.5555/closed"], options)) results.push(result);
  const byKey = Object.fromEntries(results.map(result => [result.key, result]));
  assert.deepEqual(Object.keys(byKey).sort(), ["doi:10.5555/a", "doi:10.5555/b", "doi:10.5555/closed"]);
  assert.equal(byKey["doi:10.5555/closed"]?.reason, "not-open");
  assert.deepEqual(byKey["doi:10.5555/closed"]?.metadata, { title: "Closed" });
  assert.deepEqual(readFileSync(byKey["doi:10.5555/a"]?.files[0]?.path ?? ""), pdf("a"));
  const again: string[] = [];
  for await (const { key } of harvest(["10.5555/a", "10.5555/c"], options)) again.push(key);
  assert.deepEqual(again, ["doi:10.5555/c"]);
});

test("a harvest whose manifest cannot be written ends with an error that names the manifest", async t => {
  const server = await origin(t);
  const folder = temporaryFolder("harvest");
  const options = { folder, hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] };
  const run = async (works: readonly string[]) => {
    for await (const _ of harvest(works, options));
  };
  await run([]);
  const db = new DatabaseSync(join(folder, "manifest.sqlite"));
  db.exec("CREATE TRIGGER full BEFORE INSERT ON files BEGIN SELECT raise(ABORT, 'database or disk is full'); END");
  db.close();
  await assert.rejects(run(["10.5555/a"]), {
    name: "DownloadError",
    message: `cannot write the manifest ${join(folder, "manifest.sqlite")}: database or disk is full`,
  });
});

test("a work that has failed yields its failure in every later harvest, and is tried again with retryFailed", async t => {
  let isDown = true;
  const server = await serve(t, (request, response) => {
    if (isDown) response.writeHead(404).end();
    else if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `${server.origin}/files/a`, kind: "pdf" }]));
    else response.end(pdf("a"));
  });
  const resolvers = [indexAt(server.origin)];
  const common = { folder: temporaryFolder("harvest"), hub: await hubFor(t, { retry: false }), resolvers };
  const resultsOf = async (options: Partial<HarvestOptions> = {}) => {
    const results: string[] = [];
    for await (const { key, state, reason, files } of harvest(["10.5555/a", "doi:10.5555/a"], {
      ...common,
      ...options,
    }))
      results.push(`${key} ${state} ${reason} ${files.length}`);
    return results;
  };
  const failure = "doi:10.5555/a failed unknown-work 0";
  assert.deepEqual(await resultsOf(), [failure]);
  isDown = false;
  assert.deepEqual(await resultsOf(), [failure]);
  assert.deepEqual(await resultsOf(), [failure]);
  assert.equal(server.requests.length, 1);
  assert.deepEqual(await resultsOf({ retryFailed: true }), ["doi:10.5555/a done ok 1"]);
  assert.deepEqual(await resultsOf({ retryFailed: true }), []);
});

test("paths of results are absolute, also for a relative folder", async t => {
  const server = await origin(t);
  const folder = temporaryFolder("harvest");
  const options = { folder: relative(process.cwd(), folder), hub: await hubFor(t, { retry: false }) };
  const paths: (string | undefined)[] = [];
  for await (const { files } of harvest(["10.5555/a"], { ...options, resolvers: [indexAt(server.origin)] }))
    paths.push(files[0]?.path);
  assert.deepEqual(paths, [join(folder, "doi_10.5555_a.pdf")]);
});

test("leaving the loop ends the harvest and frees the manifest; works that are left stay pending", async t => {
  const server = await origin(t);
  const options = {
    ...{
      folder: temporaryFolder("harvest"),
      hub: await hubFor(t, { retry: false }),
      resolvers: [indexAt(server.origin)],
    },
    workers: 1,
  };
  const names = Array.from({ length: 20 }, (_, at) => `10.5555/w${at}`);
  const first: string[] = [];
  for await (const { key } of harvest(names, options)) {
    first.push(key);
    if (first.length === 3) break;
  }
  const rest: string[] = [];
  for await (const { key } of harvest(names, options)) rest.push(key);
  assert.equal(new Set([...first, ...rest]).size, 20);
});

test("a text that is no identifier is a TypeError, and an aborted signal ends the loop", async t => {
  const server = await origin(t);
  const options = {
    folder: temporaryFolder("harvest"),
    hub: await hubFor(t, { retry: false }),
    resolvers: [indexAt(server.origin)],
  };
  await assert.rejects(async () => {
    for await (const _ of harvest(["10.5555/a", "nonsense"], options));
  }, /"nonsense" is not a known identifier/);
  const controller = new AbortController();
  controller.abort();
  const results: HarvestResult[] = [];
  for await (const result of harvest(["10.5555/x"], { ...options, signal: controller.signal })) results.push(result);
  assert.deepEqual(results, []);
});

test("a source that has no next work yet delays neither an abort nor the end of the loop, and is closed", async t => {
  const server = await origin(t);
  const common = { hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] };
  const sourceOf = () => {
    const next = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    const works = (async function* () {
      try {
        for (let at = 0; at < 200; at += 1) yield `10.5555/s${at}`;
        await next.promise;
        yield "10.5555/late";
      } finally {
        closed.resolve();
      }
    })();
    return { works, next, closed };
  };
  const aborted = sourceOf();
  const controller = new AbortController();
  const signal = controller.signal;
  const folder = temporaryFolder("harvest");
  const results: HarvestResult[] = [];
  for await (const result of harvest(aborted.works, { ...common, folder, signal })) {
    results.push(result);
    controller.abort();
  }
  assert.ok(results.length > 0);
  aborted.next.resolve();
  await aborted.closed.promise;

  const left = sourceOf();
  for await (const _ of harvest(left.works, { ...common, folder: temporaryFolder("harvest") })) break;
  left.next.resolve();
  await left.closed.promise;

  const unread = sourceOf();
  for await (const _ of harvest(unread.works, { ...common, folder: temporaryFolder("harvest"), signal }))
    assert.fail("the signal was aborted before the first work");
});

test("an abort ends the harvest although the service of the files does not answer", async t => {
  const { s3, folder } = await s3For(t);
  s3.hold = request => request.startsWith("PUT");
  const server = await origin(t);
  const controller = new AbortController();
  const options = {
    ...{ folder: "s3://papers/harvest", manifest: join(folder, "m.sqlite"), signal: controller.signal },
    ...{ hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] },
  };
  const ended = (async () => {
    for await (const { key } of harvest(["10.5555/a"], options)) assert.fail(key);
  })();
  await eventually(() => s3.requests.some(s3.hold));
  controller.abort();
  await ended;
});

test("an abort ends the harvest although the server of the manifest is away", { skip: whyNoPostgres() }, async t => {
  const postgres = await PostgresServer.start();
  t.after(() => postgres.stop());
  const server = await origin(t);
  const controller = new AbortController();
  const options = {
    ...{ folder: temporaryFolder("harvest"), manifest: postgres.url(), signal: controller.signal },
    ...{ hub: await hubFor(t, { retry: false }), resolvers: [indexAt(server.origin)] },
  };
  const works = (async function* () {
    yield "10.5555/a";
    await postgres.kill();
    setImmediate(() => controller.abort());
  })();
  await assert.rejects(
    async () => {
      for await (const { key } of harvest(works, options)) assert.fail(key);
    },
    { name: "StoreError", message: /cannot reach the manifest postgres:/ },
  );
});

test("every invalid option is named before anything is created, and so is an item that is no work", async () => {
  const failureOf = async (works: unknown, options: unknown): Promise<string> => {
    try {
      for await (const _ of harvest(works as string[], options as HarvestOptions));
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
    return "";
  };
  const folder = join(temporaryFolder("harvest"), "papers");
  const invalid = {
    retryFailed: "yes",
    workers: 0,
    maxBytes: "1 MB",
    patienceMs: Number.NaN,
    formats: ["pdff"],
    layout: "{yeer}.{ext}",
  };
  const message = await failureOf([], { folder, ...invalid, metadata: "ris", resolvers: ["openalex"], patience: 10 });
  for (const name of [...Object.keys(invalid), "metadata", "resolvers"])
    assert.match(message, new RegExp(`\\b${name}: `));
  assert.match(message, /patience: unknown option: did you mean patienceMs\?/);
  assert.match(
    await failureOf([], { folder, filter: { fromYeer: 2000 } }),
    /filter\.fromYeer: unknown option: did you mean fromYear\?/,
  );
  assert.match(
    await failureOf([], { folder, filter: 2000 }),
    /filter: expected an object with fromYear, .*, found 2000/,
  );
  assert.match(await failureOf([], undefined), /folder: required/);
  assert.match(await failureOf([], { folder: "s3://bucket/papers" }), /manifest: required with s3:/);
  const storage = memoryStorage(new Map());
  assert.match(
    await failureOf([], { folder, storage, layout: "flat" }),
    /layout: expected content-addressed, the only layout in memory, found "flat"/,
  );
  assert.equal(existsSync(folder), false);

  const options = { folder, resolvers: [] };
  assert.match(await failureOf("10.5555/a", options), /expected a list, found a text: pass \["10\.5555\/a"\]/);
  const key = "doi:10.5555/a";
  for (const item of [
    ...[12345, null, { ids: { doi: "10.5555/a" } }],
    ...[
      { key, ids: null },
      { key, ids: ["10.5555/a"] },
      { key, ids: { doi: 10.5555 } },
    ],
    { key, ids: { doi: "10.5555/a" }, metadata: null },
  ])
    assert.match(await failureOf([item], options), /expected an identifier or a work with key and ids/);
});

function memoryStorage(stored: Map<string, Buffer>): FileStorage {
  return {
    name: "memory",
    put: async (path, { file }) => void stored.set(path, readFileSync(file)),
    bytesOf: async path => stored.get(path)?.length,
    delete: async path => void stored.delete(path),
    locationOf: path => `memory:${path}`,
  };
}

test("a storage of the caller gets every file, complete and under its hash, and the folder none", async t => {
  const server = await origin(t);
  const stored = new Map<string, Buffer>();
  const folder = temporaryFolder("harvest");
  const hub = await hubFor(t, { retry: false });
  const options = { folder, hub, resolvers: [indexAt(server.origin)], storage: memoryStorage(stored) };
  const results: HarvestResult[] = [];
  for await (const result of harvest(["10.5555/a"], { ...options, metadata: "json" })) results.push(result);
  const [file] = results[0]?.files ?? [];
  assert.ok(file !== undefined);
  assert.equal(file.path, `memory:sha256/${file.sha256.slice(0, 2)}/${file.sha256.slice(2)}.pdf`);
  assert.deepEqual(stored.get(file.path.slice("memory:".length)), pdf("a"));
  assert.equal(stored.size, 2, "the file and its metadata");
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
  assert.equal(readdirSync(folder).filter(name => name.endsWith(".pdf")).length, 0);
});

test("an error of the storage ends the harvest, and the next one stores the file without a second download", async t => {
  const server = await origin(t);
  const stored = new Map<string, Buffer>();
  const hub = await hubFor(t, { retry: false });
  const options = { folder: temporaryFolder("harvest"), hub, resolvers: [indexAt(server.origin)] };
  const full: FileStorage = { ...memoryStorage(stored), put: () => Promise.reject(new Error("quota exceeded")) };
  await assert.rejects(async () => {
    for await (const _ of harvest(["10.5555/a"], { ...options, storage: full }));
  }, /cannot store .*\.pdf in memory: quota exceeded/);
  for await (const _ of harvest(["10.5555/a"], { ...options, storage: memoryStorage(stored) }));
  assert.deepEqual([...stored.values()], [pdf("a")]);
  assert.equal(server.requests.filter(({ url }) => url?.startsWith("/files/")).length, 1);
});
