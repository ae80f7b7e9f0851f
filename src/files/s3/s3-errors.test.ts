import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type S3Refusal, s3For } from "../../../test/harvest/s3-server.ts";
import { S3Folder } from "./s3-folder.ts";

const MOVED: S3Refusal = {
  ...{ status: 301, code: "PermanentRedirect", message: "The bucket must be addressed using the specified endpoint." },
  headers: { "x-amz-bucket-region": "eu-west-1" },
};
const REFUSALS: readonly (readonly [refusal: S3Refusal, message: string])[] = [
  [MOVED, `${MOVED.message} (PermanentRedirect); the bucket is in the region eu-west-1: set AWS_REGION`],
  [
    { status: 400, code: "ExpiredToken", message: "The provided token has expired." },
    "The provided token has expired. (ExpiredToken)",
  ],
  [
    { status: 403, code: "InvalidAccessKeyId", message: "The key does not exist." },
    "The key does not exist. (InvalidAccessKeyId)",
  ],
];

test("a refused HEAD request, whose response has no body, is reported with the reason of the service", async t => {
  const { s3 } = await s3For(t);
  const folder = await S3Folder.open("s3://papers/a", "--out");
  t.after(() => folder.close());
  for (const [refusal, message] of REFUSALS) {
    s3.deny = () => refusal;
    await assert.rejects(folder.check(), { message });
    await assert.rejects(folder.head("x.pdf"), { message: `cannot read s3://papers/a/x.pdf: ${message}` });
    await assert.rejects(folder.headIfAllowed("x.pdf"), /^DownloadError: cannot read /);
  }
});

test("credentials that may not list the bucket can store files: AWS then refuses to say that an object is missing", async t => {
  const { s3, folder: local } = await s3For(t);
  const folder = await S3Folder.open("s3://papers/a", "--out");
  t.after(() => folder.close());
  s3.deny = request => {
    const [, path = ""] = request.split(" ");
    const isRead = /^(?:HEAD|GET) /.test(request);
    return isRead && !s3.keys().includes(path.replace("/papers/", "").replace(/\?.*$/, ""));
  };
  await folder.check();
  await assert.rejects(folder.head("x.pdf"), /cannot read .*: Access Denied \(AccessDenied\)$/);
  assert.equal(await folder.headIfAllowed("x.pdf"), undefined);
  const file = join(local, "x.pdf");
  writeFileSync(file, "bytes");
  await folder.upload("x.pdf", { file, bytes: 5, sha256: "ab".repeat(32), mediaType: "application/pdf" });
  assert.deepEqual(await folder.headIfAllowed("x.pdf"), { bytes: 5, sha256: "ab".repeat(32) });
});

test("an object of a bucket that is gone is not reported as missing", async t => {
  const { s3 } = await s3For(t);
  const folder = await S3Folder.open("s3://papers/a", "--out");
  t.after(() => folder.close());
  s3.deny = () => ({ status: 404, code: "NoSuchBucket", message: "The bucket does not exist." });
  await assert.rejects(folder.hashOf("x.pdf"), /cannot read .*: The bucket does not exist\. \(NoSuchBucket\)$/);
  await assert.rejects(folder.check(), /^DownloadError: there is no bucket papers$/);
});
