import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { indexAt, pdf } from "../../../test/harvest/kit.ts";
import { hubFor, serve } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { harvest } from "../harvest.ts";
import type { FileStorage } from "./file-storage.ts";

/** Dies when it stores the metadata of a work. */
const CHILD = `
  const [folder, origin] = process.argv.slice(1);
  const { harvest } = await import("${new URL("../../harvest.ts", import.meta.url)}");
  const { createHub } = await import("${new URL("../../index.ts", import.meta.url)}");
  const hub = await createHub({ retry: false, network: { allowPrivate: true } });
  const resolver = {
    name: "index",
    needs: [],
    requestFor: () => ({ url: origin + "/index/a", role: "metadata" }),
    parse: ({ body }) => ({ kind: "found", candidates: JSON.parse(body) }),
  };
  const storage = {
    name: "memory",
    put: async path => {
      if (path.endsWith(".json")) process.kill(process.pid, "SIGKILL");
    },
    bytesOf: async () => undefined,
    delete: async () => undefined,
    locationOf: path => path,
  };
  for await (const _ of harvest(["10.5555/a"], { folder, hub, resolvers: [resolver], storage, metadata: "json" }));
`;

test("a process that dies while it stores metadata leaves a file that the next harvest removes", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/a`, kind: "pdf" }]));
    else response.end(pdf("a"));
  });
  const folder = temporaryFolder("harvest");
  const args = ["--input-type=module", "-e", CHILD, folder, server.origin];
  const child = spawn(process.execPath, args, { stdio: "inherit" });
  t.after(() => child.kill("SIGKILL"));
  const [, signal] = await once(child, "close");
  assert.equal(signal, "SIGKILL");
  assert.equal(readdirSync(join(folder, ".parts")).length, 1);

  const hub = await hubFor(t, { retry: false });
  const storage: FileStorage = {
    name: "memory",
    put: async () => undefined,
    bytesOf: async () => undefined,
    delete: async () => undefined,
    locationOf: path => path,
  };
  for await (const _ of harvest([], { folder, hub, resolvers: [indexAt(server.origin)], storage }));
  assert.deepEqual(readdirSync(join(folder, ".parts")), []);
});

test("metadata that a storage could not store is stored by the next harvest, without another download", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url?.startsWith("/index/"))
      response.end(JSON.stringify([{ url: `http://${request.headers.host}/files/a`, kind: "pdf" }]));
    else response.end(pdf("a"));
  });
  const folder = temporaryFolder("harvest");
  const hub = await hubFor(t, { retry: false });
  const stored = new Map<string, number>();
  let isAway = true;
  const storage: FileStorage = {
    name: "memory",
    put: async (path, { bytes }) => {
      if (isAway && path.endsWith(".json")) throw new Error("503");
      stored.set(path, bytes);
    },
    bytesOf: async path => stored.get(path),
    delete: async path => void stored.delete(path),
    locationOf: path => path,
  };
  const options = { folder, hub, resolvers: [indexAt(server.origin)], storage, metadata: "json" } as const;
  const run = async () => {
    for await (const _ of harvest(["10.5555/a"], options));
  };
  await assert.rejects(run(), /cannot store .*\.json in memory: 503/);
  isAway = false;
  await run();
  assert.deepEqual([...stored.keys()].map(path => path.split(".").at(-1)).sort(), ["json", "pdf"]);
  assert.equal(server.requests.filter(({ url }) => url === "/files/a").length, 1);
});
