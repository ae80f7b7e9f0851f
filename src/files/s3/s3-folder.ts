import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { DownloadError } from "../../errors.ts";
import { connectS3, type S3Connection, type S3Module, type S3Output } from "./s3-client.ts";
import { isNotAllowed, isNotFound, lacksReason, s3Message } from "./s3-errors.ts";
import { md5Of, upload } from "./s3-upload.ts";
import { parseS3Url, type S3Location } from "./s3-url.ts";

/** An unfinished upload that is older than this counts as that of a process that was killed. */
export const ABANDONED_AFTER_MS = 24 * 3_600_000;

/** What a service knows about an object without reading it. */
export interface S3Object {
  readonly bytes: number | undefined;
  /** From the metadata that `upload` writes; undefined for an object of another program. */
  readonly sha256: string | undefined;
}

/** A complete file that becomes an object. */
export interface S3File {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly mediaType: string;
}

/**
 * The objects of a bucket whose keys begin with a prefix; paths are relative to the prefix. An object is visible when it
 * is complete, and never before. Errors of the service about an object are DownloadErrors with its address.
 */
export class S3Folder {
  /** `s3://bucket/prefix/` */
  readonly name: string;
  readonly #location: S3Location;
  readonly #connection: S3Connection;
  readonly #stopping = new AbortController();

  private constructor(location: S3Location, connection: S3Connection) {
    this.#location = location;
    this.#connection = connection;
    this.name = `s3://${location.bucket}/${location.prefix}`;
  }

  /** Sends no request. @param url `s3://bucket/prefix` @param where the setting with the URL, for messages */
  static async open(url: string, where: string): Promise<S3Folder> {
    return new S3Folder(parseS3Url(url, where), await connectS3(where));
  }

  /**
   * Rejects if there is no such bucket, or if the credentials are invalid. A response that the request is not allowed
   * passes: the credentials may still permit access to objects.
   */
  async check(): Promise<void> {
    const { bucket: Bucket } = this.#location;
    try {
      await this.#sendHead("HeadBucketCommand", { Bucket }, () =>
        this.#send("ListObjectsV2Command", { Bucket, MaxKeys: 1 }),
      );
    } catch (error) {
      if (isNotFound(error)) throw new DownloadError(`there is no bucket ${Bucket}`, { cause: error });
      if (!isNotAllowed(error)) throw new DownloadError(s3Message(error), { cause: error });
    }
  }

  /**
   * Aborts the uploads of killed processes: their parts are not visible as objects, but are stored and billed. If the
   * credentials do not permit to list or abort uploads, lifecycle rules of the bucket must remove them.
   * @param isOwnPath whether this program writes to a path; uploads of other programs are left alone
   */
  async abortAbandoned(nowMs: number, isOwnPath: (path: string) => boolean): Promise<void> {
    const { bucket: Bucket, prefix: Prefix } = this.#location;
    let markers = {};
    for (let isMore = true; isMore; ) {
      let page: S3Output;
      try {
        page = await this.#send("ListMultipartUploadsCommand", { Bucket, Prefix, ...markers });
        for (const { Key = "", UploadId, Initiated } of page.Uploads ?? [])
          if (
            Initiated !== undefined &&
            Initiated.getTime() < nowMs - ABANDONED_AFTER_MS &&
            isOwnPath(this.#pathOf(Key))
          )
            await this.#send("AbortMultipartUploadCommand", { Bucket, Key, UploadId }).catch(ignoreGone);
      } catch (error) {
        if (isNotAllowed(error)) return;
        throw this.#errorFor("use", "", error);
      }
      markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
      isMore = page.IsTruncated === true && page.NextKeyMarker !== undefined;
    }
  }

  /** Undefined if there is no such object. */
  async head(path: string, signal?: AbortSignal): Promise<S3Object | undefined> {
    const found = await this.#ifPresent(path, () => this.#headOf(path, signal));
    return found && { bytes: found.ContentLength, sha256: found.Metadata?.["sha256"] };
  }

  /**
   * As `head`, before an upload. Undefined also if the service does not say whether there is an object: AWS refuses this
   * request for a missing object if the credentials do not permit `s3:ListBucket`.
   */
  async headIfAllowed(path: string): Promise<S3Object | undefined> {
    try {
      return await this.head(path);
    } catch (error) {
      if (error instanceof DownloadError && isNotAllowed(error.cause)) return undefined;
      throw error;
    }
  }

  /** Uploads a file, in parts if it is large. May be repeated. An upload that fails is aborted. */
  async upload(path: string, { file, bytes, sha256, mediaType }: S3File, signal?: AbortSignal): Promise<void> {
    try {
      const options = { mediaType, sha256, signal: this.#stoppedBy(signal) };
      await upload(this.#connection, this.#target(path), file, options);
      const stored = (await this.head(path, options.signal))?.bytes;
      if (stored !== bytes) throw new Error(`uploaded ${bytes} bytes, but the object has ${stored ?? "none"}`);
    } catch (error) {
      throw error instanceof DownloadError ? error : this.#errorFor("write", path, error);
    }
  }

  /** Reads an object and computes its SHA-256; undefined if there is no such object. */
  hashOf(path: string, signal?: AbortSignal): Promise<string | undefined> {
    return this.#ifPresent(path, async () => {
      const hash = createHash("sha256");
      for await (const chunk of this.#read(path, signal)) hash.update(chunk);
      return hash.digest("hex");
    });
  }

  /** Writes an object to a new file and returns its SHA-256; undefined if there is no such object. */
  download(path: string, file: string, signal?: AbortSignal): Promise<string | undefined> {
    return this.#ifPresent(path, async () => {
      const hash = createHash("sha256");
      const body = this.#read(path, signal);
      const hashed = async function* () {
        for await (const chunk of body) {
          hash.update(chunk);
          yield chunk;
        }
      };
      await pipeline(hashed, createWriteStream(file, { flags: "wx" }));
      return hash.digest("hex");
    });
  }

  /** The text of a small object; undefined if there is no such object. */
  readText(path: string): Promise<string | undefined> {
    return this.#ifPresent(path, async () => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of this.#read(path)) chunks.push(chunk);
      return Buffer.concat(chunks).toString("utf8");
    });
  }

  /** Writes a small object, complete or not at all. */
  async writeText(path: string, text: string): Promise<void> {
    const Body = Buffer.from(text);
    try {
      await this.#send("PutObjectCommand", { ...this.#target(path), Body, ContentMD5: md5Of(Body) });
    } catch (error) {
      throw this.#errorFor("write", path, error);
    }
  }

  async copy(from: string, to: string): Promise<void> {
    const { Bucket, Key } = this.#target(from);
    // The service decodes a plus as a space, so each segment is encoded completely.
    const CopySource = [Bucket, ...Key.split("/")].map(encodeURIComponent).join("/");
    try {
      await this.#send("CopyObjectCommand", { ...this.#target(to), CopySource });
    } catch (error) {
      throw this.#errorFor("copy", from, error);
    }
  }

  /** Nothing happens if there is no such object. */
  async delete(path: string): Promise<void> {
    try {
      await this.#send("DeleteObjectCommand", this.#target(path));
    } catch (error) {
      throw this.#errorFor("delete", path, error);
    }
  }

  /** Every object below a path that is empty or ends with a slash, in the order of the service. */
  async *list(path: string): AsyncGenerator<{ readonly path: string; readonly modifiedMs: number }> {
    for await (const { Contents = [] } of this.#pages(path, {}))
      for (const { Key, LastModified } of Contents)
        if (Key !== undefined) yield { path: this.#pathOf(Key), modifiedMs: LastModified?.getTime() ?? 0 };
  }

  /** The names of the folders below a path that is empty or ends with a slash. */
  async folders(path: string): Promise<readonly string[]> {
    const names: string[] = [];
    for await (const { CommonPrefixes = [] } of this.#pages(path, { Delimiter: "/" }))
      for (const { Prefix = "" } of CommonPrefixes) names.push(this.#pathOf(Prefix).slice(path.length, -1));
    return names;
  }

  locationOf(path: string): string {
    return `${this.name}${path}`;
  }

  /** Aborts all requests. */
  stop(): void {
    this.#stopping.abort(new Error("stopped"));
  }

  close(): void {
    this.stop();
    this.#connection.client.destroy();
  }

  async *#pages(path: string, options: Readonly<Record<string, string>>): AsyncGenerator<S3Output> {
    const { bucket: Bucket, prefix } = this.#location;
    let ContinuationToken: string | undefined;
    do {
      const request = { Bucket, Prefix: prefix + path, ...options, ContinuationToken };
      let page: S3Output;
      try {
        page = await this.#send("ListObjectsV2Command", request);
      } catch (error) {
        throw this.#errorFor("list", path, error);
      }
      yield page;
      ContinuationToken = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (ContinuationToken !== undefined);
  }

  async *#read(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { Body = [] } = await this.#send("GetObjectCommand", this.#target(path), signal);
    for await (const chunk of Body) {
      // With the reason of the signal: the error of the SDK has none.
      signal?.throwIfAborted();
      yield chunk;
    }
  }

  #send(
    command: Exclude<keyof S3Module, "S3Client">,
    input: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<S3Output> {
    const { client, module } = this.#connection;
    return client.send(new module[command](input), { abortSignal: this.#stoppedBy(signal) });
  }

  async #headOf(path: string, signal: AbortSignal | undefined): Promise<S3Output> {
    const target = this.#target(path);
    const get = async () => {
      const { Body = [] } = await this.#send("GetObjectCommand", { ...target, Range: "bytes=0-0" }, signal);
      for await (const _ of Body);
    };
    return this.#sendHead("HeadObjectCommand", target, get, signal);
  }

  /**
   * Sends a HEAD request. If it is refused without a reason, `get` is sent: its error has the reason. It may also succeed,
   * because it corrects the clock of the client.
   */
  async #sendHead(
    command: "HeadBucketCommand" | "HeadObjectCommand",
    input: Readonly<Record<string, unknown>>,
    get: () => Promise<unknown>,
    signal?: AbortSignal,
  ): Promise<S3Output> {
    try {
      return await this.#send(command, input, signal);
    } catch (error) {
      if (!lacksReason(error)) throw error;
    }
    await get();
    return this.#send(command, input, signal);
  }

  /** A signal that `stop` aborts too. A new one for each request, so that listeners of the SDK do not accumulate. */
  #stoppedBy(signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([this.#stopping.signal, ...(signal === undefined ? [] : [signal])]);
  }

  async #ifPresent<Value>(path: string, read: () => Promise<Value>): Promise<Value | undefined> {
    try {
      return await read();
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw this.#errorFor("read", path, error);
    }
  }

  #target(path: string) {
    return { Bucket: this.#location.bucket, Key: this.#location.prefix + path };
  }

  #pathOf(key: string): string {
    return key.slice(this.#location.prefix.length);
  }

  #errorFor(action: string, path: string, error: unknown): DownloadError {
    return new DownloadError(`cannot ${action} ${this.locationOf(path)}: ${s3Message(error)}`, { cause: error });
  }
}

/** The upload is gone if another process has aborted it. */
function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
