import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32, createGunzip } from "node:zlib";
import type { Entry, ZipFile } from "yauzl";
import { DownloadError } from "../errors.ts";
import { formatOfName, type Packing } from "./format.ts";

export interface UnpackResult {
  readonly bytes: number;
  readonly sha256: string;
}

export interface UnpackLimits {
  readonly maxBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/** Ontologies are text and shrink to about a twentieth. A ratio of 1000 is that of a file made to fill the disk. */
const MAX_RATIO = 300;
/** Below this size the ratio is not checked, because a small file fills no disk. */
const RATIO_FREE_BYTES = 16_000_000;
const MAX_ENTRIES = 10_000;

/**
 * Unpacks `from` into `to`, with limits on the size and on the compression ratio. Names inside an archive never become
 * paths. Rejects with a DownloadError.
 */
export async function unpack(from: string, to: string, packing: Packing, limits: UnpackLimits): Promise<UnpackResult> {
  try {
    return packing === "gzip" ? await gunzip(from, to, limits) : await unzip(from, to, limits);
  } catch (error) {
    limits.signal?.throwIfAborted();
    if (error instanceof DownloadError) throw error;
    // Disk errors keep their own type: the archive may be valid.
    if (error instanceof Error && "syscall" in error) throw error;
    throw new DownloadError(`the ${packing} file is damaged: ${(error as Error).message}`, { cause: error });
  }
}

async function gunzip(from: string, to: string, limits: UnpackLimits): Promise<UnpackResult> {
  const packed = createReadStream(from);
  const meter = new UnpackMeter(limits.maxBytes, () => packed.bytesRead);
  await pipeline(packed, createGunzip(), meter, createWriteStream(to), { signal: limits.signal });
  return meter.result();
}

async function unzip(from: string, to: string, limits: UnpackLimits): Promise<UnpackResult> {
  const zip = await openZipFile(from);
  try {
    const entry = await ontologyEntryOf(zip);
    const { uncompressedSize, compressedSize, crc32: expected } = entry;
    checkGrowth(uncompressedSize, compressedSize, limits.maxBytes);
    const stream = await new Promise<Readable>((resolve, reject) => {
      zip.openReadStream(entry, (error, found) => (error ? reject(error) : resolve(found)));
    });
    const meter = new UnpackMeter(limits.maxBytes, () => compressedSize);
    await pipeline(stream, meter, createWriteStream(to), { signal: limits.signal });
    if (meter.crc !== expected) throw new DownloadError("the zip file is damaged: CRC-32 mismatch");
    return meter.result();
  } finally {
    zip.close();
  }
}

async function openZipFile(path: string): Promise<ZipFile> {
  const { open: openZip } = await import("yauzl");
  return new Promise((resolve, reject) => {
    openZip(path, { lazyEntries: true, autoClose: false, strictFileNames: true }, (error, zip) =>
      error ? reject(error) : resolve(zip),
    );
  });
}

/** The largest entry whose name has an ontology extension. */
function ontologyEntryOf(zip: ZipFile): Promise<Entry> {
  const { promise, resolve, reject } = Promise.withResolvers<Entry>();
  let best: Entry | undefined;
  if (zip.entryCount > MAX_ENTRIES) {
    reject(new DownloadError(`the zip file has ${zip.entryCount} entries, limit is ${MAX_ENTRIES}`));
    return promise;
  }
  zip.on("entry", entry => {
    const name = entry.fileName;
    const isCandidate =
      !name.endsWith("/") && !/(?:^|\/)(?:__MACOSX\/|\.)/.test(name) && formatOfName(name) !== undefined;
    if (isCandidate && entry.uncompressedSize > (best?.uncompressedSize ?? -1)) best = entry;
    zip.readEntry();
  });
  zip.on("error", reject);
  zip.on("end", () => {
    if (best === undefined) reject(new DownloadError("the zip file contains no file with a known ontology extension"));
    else if (best.isEncrypted()) reject(new DownloadError("the zip file is encrypted"));
    else resolve(best);
  });
  zip.readEntry();
  return promise;
}

/** Counts and hashes the unpacked bytes, and fails as soon as a limit is exceeded. */
class UnpackMeter extends Transform {
  readonly #maxBytes: number;
  readonly #packedBytes: () => number;
  readonly #hash = createHash("sha256");
  #bytes = 0;
  crc = 0;

  constructor(maxBytes: number, packedBytes: () => number) {
    super();
    this.#maxBytes = maxBytes;
    this.#packedBytes = packedBytes;
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: Error | null, chunk?: Buffer) => void): void {
    this.#bytes += chunk.length;
    try {
      checkGrowth(this.#bytes, this.#packedBytes(), this.#maxBytes);
    } catch (error) {
      done(error as Error);
      return;
    }
    this.#hash.update(chunk);
    this.crc = crc32(chunk, this.crc);
    done(null, chunk);
  }

  result(): UnpackResult {
    return { bytes: this.#bytes, sha256: this.#hash.digest("hex") };
  }
}

function checkGrowth(bytes: number, packedBytes: number, maxBytes: number): void {
  if (bytes > maxBytes) throw new DownloadError(`unpacked size exceeds ${maxBytes} bytes (max_file_mb)`);
  if (bytes > RATIO_FREE_BYTES && bytes > packedBytes * MAX_RATIO) {
    throw new DownloadError(`compression ratio exceeds ${MAX_RATIO}`);
  }
}
