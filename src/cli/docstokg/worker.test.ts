import assert from "node:assert/strict";
import { test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
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
