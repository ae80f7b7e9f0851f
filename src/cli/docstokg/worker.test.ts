import assert from "node:assert/strict";
import { test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Io } from "../program.ts";
import { workOn } from "./worker.ts";

test("Ctrl-C ends a worker that looks for a run while the server is away", { skip: whyNoPostgres() }, async t => {
  const server = await PostgresServer.start();
  t.after(() => server.stop());
  const opened = async (stay: boolean) => ({ stay, manifest: await openManifest(server.url(), systemTime) });
  const workers = [await opened(false), await opened(true)];
  await server.kill();
  for (const { stay, manifest } of workers) {
    let interrupt: () => void = assert.fail;
    let isListening = true;
    const output = { write: (text: string) => assert.fail(text) };
    const onInterrupt = (listener: () => void) => {
      interrupt = listener;
      return () => {
        isListening = false;
      };
    };
    const io: Io = { argv: [], env: {}, stdout: output, stderr: output, onInterrupt };
    const ended = workOn(manifest, { stay }, io);
    interrupt();
    assert.equal(await ended, 130);
    assert.equal(isListening, false);
    await manifest.close();
  }
});

test("a worker that no run admits says so, although works are pending", { skip: whyNoPostgres() }, async t => {
  const server = await PostgresServer.start();
  t.after(() => server.stop());
  const url = server.url();
  const [manifest, other] = [await openManifest(url, systemTime), await openManifest(url, systemTime)];
  t.after(() => Promise.all([manifest.close(), other.close()]));
  const run = await other.beginRun("run", "{}");
  await other.works.add(run, [workOf({ doi: "10.1000/a" }, {})], { isPresent: () => true });
  await other.endRun(run, "interrupted");
  assert.notEqual(await manifest.nextRun(), undefined);
  // Its limits are in its own memory.
  await other.beginRun("run");
  let text = "";
  const output = { write: (added: string) => (text += added) };
  assert.equal(await workOn(manifest, {}, { argv: [], env: {}, stdout: output, stderr: output }), 0);
  assert.equal(text, `No run of ${manifest.name} has works for a worker.\n`);
});
