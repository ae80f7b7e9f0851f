import assert from "node:assert/strict";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { s3For } from "../../../test/harvest/s3-server.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { connectS3, type S3Client } from "./s3-client.ts";
import { upload } from "./s3-upload.ts";

test("an upload ends soon after its abort, although the service does not answer any more", async t => {
  await s3For(t);
  const { client, module } = await connectS3("--out");
  t.after(() => client.destroy());
  const file = join(temporaryFolder("s3"), "large");
  await writeFile(file, "");
  await truncate(file, 2 ** 24);
  const aborting = new AbortController();
  const sent: object[] = [];
  // Drops every packet from the first part on.
  const silent: S3Client = {
    send: (command, options) => {
      sent.push(command);
      if (sent.length === 1) return client.send(command, options);
      if (sent.length === 2) queueMicrotask(() => aborting.abort(new Error("stopped")));
      const { promise, reject } = Promise.withResolvers<never>();
      const { abortSignal: signal } = options ?? {};
      const stop = () => reject(signal?.reason);
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop);
      return promise;
    },
    destroy: () => undefined,
  };
  const limits: number[] = [];
  t.mock.method(AbortSignal, "timeout", (ms: number) => {
    limits.push(ms);
    return AbortSignal.abort(new Error("timeout"));
  });
  const options = { mediaType: "application/pdf", sha256: "ab".repeat(32), signal: aborting.signal };
  await assert.rejects(
    upload({ client: silent, module }, { Bucket: "papers", Key: "k" }, file, options),
    /^Error: stopped/,
  );
  assert.equal(sent.length, 3);
  assert.ok(sent[2] instanceof module.AbortMultipartUploadCommand);
  assert.deepEqual(limits, [5000]);
});
