import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { DownloadError, messageOf } from "../../errors.ts";
import { sha256Of } from "../../files/file-hash.ts";
import type { Time } from "../../time/time.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import type { FileDamage, FileStore, FileToStore } from "./file-store.ts";
import { PartFiles } from "./part-files.ts";
import { connectS3, isNotFound, type S3Connection, type S3Output } from "./s3-client.ts";
import { upload } from "./s3-upload.ts";
import { parseS3Url, type S3Location } from "./s3-url.ts";

/** Uploads at a time. Each has one part in memory. */
const UPLOADS_MAX = 4;
const UPLOAD_TIMEOUT_MS = 30 * 60_000;
/** An unfinished upload that is older has no process any more. */
const ABANDONED_AFTER_MS = 2 * UPLOAD_TIMEOUT_MS;

/** @param out `s3://bucket/prefix` */
export async function openS3Store(out: string, manifest: string, time: Time): Promise<FileStore> {
  return new S3Store(parseS3Url(out), await connectS3(), partsFolderFor(out, manifest), time);
}

/** On this machine, because a file is complete and checked before it is uploaded. */
function partsFolderFor(out: string, manifest: string): string {
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(cache, "docstokg", "parts", sha256Of(`${out} ${manifest}`).slice(0, 24));
}

/**
 * A bucket of an S3 service. Names come from the hashes of files, so that an upload can be repeated and two processes
 * that store the same bytes do not disturb each other.
 */
class S3Store implements FileStore {
  readonly name: string;
  readonly parts: PartFiles;
  readonly isContentAddressed = true;
  readonly #location: S3Location;
  readonly #connection: S3Connection;
  readonly #time: Time;
  readonly #stopping = new AbortController();
  readonly #uploads: Promise<unknown>[] = Array.from({ length: UPLOADS_MAX }, () => Promise.resolve());
  #nextUpload = 0;

  constructor(location: S3Location, connection: S3Connection, partsFolder: string, time: Time) {
    this.#time = time;
    this.#location = location;
    this.#connection = connection;
    this.name = `s3://${location.bucket}/${location.prefix}`;
    this.parts = new PartFiles(partsFolder);
  }

  async prepare(): Promise<void> {
    await this.parts.prepare();
    await this.#checkBucket();
    await this.#abortAbandoned();
  }

  isPresent(): boolean {
    return true;
  }

  async has({ path, bytes }: Pick<StoredFile, "path" | "bytes">): Promise<boolean> {
    return (await this.#head(path))?.ContentLength === bytes;
  }

  async damageOf({ path, sha256 }: Pick<StoredFile, "path" | "sha256">): Promise<FileDamage | undefined> {
    const { client, module } = this.#connection;
    const hash = createHash("sha256");
    try {
      const { Body } = await client.send(new module.GetObjectCommand(this.#target(path)));
      for await (const chunk of Body ?? []) hash.update(chunk);
    } catch (error) {
      if (isNotFound(error)) return "missing";
      throw this.#errorFor("read", path, error);
    }
    return hash.digest("hex") === sha256 ? undefined : "changed";
  }

  async availablePath(target: string): Promise<string> {
    return target;
  }

  store(file: FileToStore): Promise<void> {
    const lane = this.#nextUpload;
    this.#nextUpload = (lane + 1) % UPLOADS_MAX;
    const stored = (this.#uploads[lane] ?? Promise.resolve()).then(() => this.#store(file));
    this.#uploads[lane] = stored.catch(() => undefined);
    return stored;
  }

  async displace(): Promise<void> {
    // Different bytes have different names.
  }

  async setAside(path: string): Promise<void> {
    const { client, module } = this.#connection;
    const { Bucket, Key } = this.#target(path);
    const CopySource = encodeURI(`${Bucket}/${Key}`);
    await client.send(new module.CopyObjectCommand({ Bucket, Key: `${Key}.changed`, CopySource }));
    await this.deleteFile(path);
  }

  async deleteFile(path: string): Promise<void> {
    const { client, module } = this.#connection;
    await client.send(new module.DeleteObjectCommand(this.#target(path)));
  }

  async writeText(path: string, text: string): Promise<void> {
    const { client, module } = this.#connection;
    await client.send(new module.PutObjectCommand({ ...this.#target(path), Body: Buffer.from(text) }));
  }

  locationOf(path: string): string {
    return `${this.name}${path}`;
  }

  stop(): void {
    this.#stopping.abort(new Error("stopped"));
  }

  close(): void {
    this.stop();
    this.#connection.client.destroy();
  }

  async #store({ part, path, sha256, mediaType }: FileToStore): Promise<void> {
    const bytes = this.parts.bytesOf(part);
    const known = await this.#head(path);
    // After a crash the partial file may be gone, and the object complete.
    if (known !== undefined && isSame(known, bytes, sha256)) return this.parts.delete(part);
    if (bytes === 0) throw new DownloadError(`${this.parts.pathOf(part)} is gone, and ${path} is not in ${this.name}`);
    const signal = AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(UPLOAD_TIMEOUT_MS)]);
    try {
      await upload(this.#connection, this.#target(path), this.parts.pathOf(part), { mediaType, sha256, signal });
      const length = (await this.#head(path))?.ContentLength;
      if (length !== bytes) throw new Error(`the service has ${length ?? "no"} bytes of ${bytes}`);
    } catch (error) {
      throw this.#errorFor("write", path, error);
    }
    await this.parts.delete(part);
  }

  /** Undefined if there is no such object. */
  async #head(path: string): Promise<S3Output | undefined> {
    const { client, module } = this.#connection;
    try {
      return await client.send(new module.HeadObjectCommand(this.#target(path)));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw this.#errorFor("read", path, error);
    }
  }

  /** A role may be allowed to read and write objects, and not to look at the bucket. */
  async #checkBucket(): Promise<void> {
    const { client, module } = this.#connection;
    const { bucket } = this.#location;
    try {
      await client.send(new module.HeadBucketCommand({ Bucket: bucket }));
    } catch (error) {
      if (isNotFound(error)) throw new DownloadError(`there is no bucket ${bucket}`, { cause: error });
      if (!isNotAllowed(error)) throw error;
    }
  }

  /** Parts of uploads whose process was killed are not visible as objects, but are stored and billed. */
  async #abortAbandoned(): Promise<void> {
    const { client, module } = this.#connection;
    const { bucket: Bucket, prefix: Prefix } = this.#location;
    let markers = {};
    for (let isMore = true; isMore; ) {
      let page: S3Output;
      try {
        page = await client.send(new module.ListMultipartUploadsCommand({ Bucket, Prefix, ...markers }));
      } catch (error) {
        if (isNotAllowed(error)) return;
        throw this.#errorFor("use", "", error);
      }
      const before = this.#time.wallMs() - ABANDONED_AFTER_MS;
      for (const { Key, UploadId, Initiated } of page.Uploads ?? [])
        if (Initiated !== undefined && Initiated.getTime() < before)
          await client.send(new module.AbortMultipartUploadCommand({ Bucket, Key, UploadId })).catch(ignoreGone);
      markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
      isMore = page.IsTruncated === true && page.NextKeyMarker !== undefined;
    }
  }

  #target(path: string) {
    return { Bucket: this.#location.bucket, Key: this.#location.prefix + path };
  }

  #errorFor(action: string, path: string, error: unknown): DownloadError {
    return new DownloadError(`cannot ${action} ${this.locationOf(path)}: ${messageOf(error)}`, { cause: error });
  }
}

/** @param bytes 0 if the partial file is gone */
function isSame({ ContentLength, Metadata = {} }: S3Output, bytes: number, sha256: string): boolean {
  return (bytes === 0 || ContentLength === bytes) && (Metadata["sha256"] ?? sha256) === sha256;
}

/** Some services do not list uploads, and some roles may not: then lifecycle rules of the bucket remove abandoned ones. */
function isNotAllowed(error: unknown): boolean {
  const { name, $metadata } = (error ?? {}) as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === "NotImplemented" || $metadata?.httpStatusCode === 403 || $metadata?.httpStatusCode === 501;
}

/** Another process has removed it. */
function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
