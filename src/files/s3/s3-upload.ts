import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { S3Connection } from "./s3-client.ts";
import { isNotFound } from "./s3-errors.ts";

export interface UploadTarget {
  readonly Bucket: string;
  readonly Key: string;
}

export interface UploadOptions {
  readonly mediaType: string;
  readonly sha256: string;
  readonly signal: AbortSignal;
}

/** The size of a part, and of the largest file that is sent at once. S3 allows 5 MiB to 5 GiB, and 10,000 parts. */
const PART_BYTES = 8 * 2 ** 20;
const PARTS_MAX = 10_000;
/** A caller that has stopped an upload waits this long at most for a service that does not answer. */
const ABORT_TIMEOUT_MS = 5000;

/**
 * Uploads a file. The object appears when the service has received all parts, and each part had the announced MD5. An
 * upload that fails is aborted, so that its parts cost nothing.
 */
export async function upload(
  connection: S3Connection,
  target: UploadTarget,
  path: string,
  options: UploadOptions,
): Promise<void> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const read = async (position: number, length: number) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
      if (bytesRead !== length) throw new Error(`${path} has changed while it was uploaded`);
      return buffer;
    };
    if (size <= PART_BYTES) await putObject(connection, target, await read(0, size), options);
    else await putParts(connection, target, size, read, options);
  } finally {
    await file.close();
  }
}

async function putObject(
  { client, module }: S3Connection,
  target: UploadTarget,
  body: Buffer,
  { mediaType, sha256, signal }: UploadOptions,
): Promise<void> {
  const fields = { ContentType: mediaType, Metadata: { sha256 }, ContentMD5: md5Of(body), ContentLength: body.length };
  await client.send(new module.PutObjectCommand({ ...target, ...fields, Body: body }), { abortSignal: signal });
}

async function putParts(
  connection: S3Connection,
  target: UploadTarget,
  size: number,
  read: (position: number, length: number) => Promise<Buffer>,
  { mediaType, sha256, signal }: UploadOptions,
): Promise<void> {
  const { client, module } = connection;
  const partBytes = Math.max(PART_BYTES, Math.ceil(size / PARTS_MAX));
  const fields = { ContentType: mediaType, Metadata: { sha256 } };
  const { UploadId } = await client.send(new module.CreateMultipartUploadCommand({ ...target, ...fields }), {
    abortSignal: signal,
  });
  try {
    const Parts: { readonly PartNumber: number; readonly ETag: string | undefined }[] = [];
    for (let at = 0; at < size; at += partBytes) {
      const body = await read(at, Math.min(partBytes, size - at));
      const PartNumber = Parts.length + 1;
      const part = { UploadId, PartNumber, ContentMD5: md5Of(body), ContentLength: body.length, Body: body };
      const { ETag } = await client.send(new module.UploadPartCommand({ ...target, ...part }), { abortSignal: signal });
      Parts.push({ PartNumber, ETag });
    }
    const complete = { ...target, UploadId, MultipartUpload: { Parts } };
    try {
      await client.send(new module.CompleteMultipartUploadCommand(complete), { abortSignal: signal });
    } catch (error) {
      // If a reply is lost, the SDK repeats the request. By then the upload is gone, because the object is complete.
      if (!isNotFound(error) || !(await isStored(connection, target, size, sha256, signal))) throw error;
    }
  } catch (error) {
    // Not with the signal, which may be aborted. If this fails, a later run removes the parts.
    const abortSignal = AbortSignal.timeout(ABORT_TIMEOUT_MS);
    const abort = new module.AbortMultipartUploadCommand({ ...target, UploadId });
    await client.send(abort, { abortSignal }).catch(() => undefined);
    throw error;
  }
}

async function isStored(
  { client, module }: S3Connection,
  target: UploadTarget,
  size: number,
  sha256: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await client.send(new module.HeadObjectCommand({ ...target }), { abortSignal: signal });
    return found.ContentLength === size && found.Metadata?.["sha256"] === sha256;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

export function md5Of(bytes: Buffer): string {
  return createHash("md5").update(bytes).digest("base64");
}
