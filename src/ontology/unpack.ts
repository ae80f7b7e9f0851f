import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
// createZstdDecompress is used through the object: an old Node lacks it, and a named import of it would fail before
// supported-runtime.ts can report the version.
import zlib, { crc32, createGunzip } from "node:zlib";
import { DownloadError } from "../errors.ts";
import { decompressed, type OwnPacking } from "../files/compression/decompression.ts";
import { zstdFrames } from "../files/compression/zstd-frames.ts";
import { memberProblem, ontologyMembers } from "./archive-member.ts";
import type { Packing } from "./format.ts";
import { checkUnpackedSize } from "./unpack-limits.ts";
import { untar } from "./untar.ts";
import { type Entry, entryStream, openZipFile, type ZipFile, zipEntries } from "./zip-file.ts";

export interface UnpackResult {
  readonly bytes: number;
  readonly sha256: string;
}

export interface UnpackOptions {
  readonly maxBytes: number;
  /** The wanted file of an archive with several ontologies: its name or path in the archive. */
  readonly member?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

const MAX_ENTRIES = 10_000;

/**
 * Unpacks `from` into `to`, with limits on the size and on the compression ratio. Names inside an archive never become
 * paths. Rejects with a DownloadError.
 */
export async function unpack(
  from: string,
  to: string,
  packing: Packing,
  options: UnpackOptions,
): Promise<UnpackResult> {
  try {
    if (packing === "zip") return await unzip(from, to, options);
    if (packing === "tar") return await untarFile(from, to, options);
    if (packing === "gzip") return await decompress(from, createGunzip(), to, options);
    if (packing === "zstd") return await decompress(from, zlib.createZstdDecompress(), to, options, zstdFrames);
    return await decompressOwn(from, packing, to, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    if (error instanceof DownloadError) throw error;
    // Disk errors keep their own type: the archive may be valid.
    if (error instanceof Error && "syscall" in error) throw error;
    throw new DownloadError(`the ${packing} file is damaged: ${(error as Error).message}`, { cause: error });
  }
}

async function decompress(
  from: string,
  decoder: Transform,
  to: string,
  options: UnpackOptions,
  split?: typeof zstdFrames,
): Promise<UnpackResult> {
  const packed = createReadStream(from);
  const meter = new UnpackMeter(options.maxBytes, () => packed.bytesRead);
  const pieces = split?.(packed) ?? packed;
  await pipeline(pieces, decoder, meter, createWriteStream(to), { signal: options.signal });
  return meter.result();
}

async function decompressOwn(
  from: string,
  packing: OwnPacking,
  to: string,
  options: UnpackOptions,
): Promise<UnpackResult> {
  let packedBytes = 0;
  const meter = new UnpackMeter(options.maxBytes, () => packedBytes);
  const pieces = decompressed(from, packing, bytes => {
    packedBytes = bytes;
  });
  await pipeline(pieces, meter, createWriteStream(to), { signal: options.signal });
  return meter.result();
}

async function untarFile(from: string, to: string, options: UnpackOptions): Promise<UnpackResult> {
  const meter = new UnpackMeter(options.maxBytes, () => Number.POSITIVE_INFINITY);
  await pipeline(untar(from, options.member), meter, createWriteStream(to), { signal: options.signal });
  return meter.result();
}

async function unzip(from: string, to: string, options: UnpackOptions): Promise<UnpackResult> {
  const zip = await openZipFile(from);
  try {
    const entry = await ontologyEntryOf(zip, options.member);
    const { uncompressedSize, compressedSize, crc32: expected } = entry;
    checkUnpackedSize(uncompressedSize, compressedSize, options.maxBytes);
    const meter = new UnpackMeter(options.maxBytes, () => compressedSize);
    await pipeline(await entryStream(zip, entry), meter, createWriteStream(to), { signal: options.signal });
    if (meter.crc !== expected) throw new DownloadError("the zip file is damaged: CRC-32 mismatch");
    return meter.result();
  } finally {
    zip.close();
  }
}

/** The only entry whose name has an ontology extension, or the entry that the user names. */
async function ontologyEntryOf(zip: ZipFile, member: string | undefined): Promise<Entry> {
  if (zip.entryCount > MAX_ENTRIES)
    throw new DownloadError(`the zip file has ${zip.entryCount} entries, limit is ${MAX_ENTRIES}`);
  const entries: Entry[] = [];
  for await (const entry of zipEntries(zip)) entries.push(entry);
  const found = ontologyMembers(entries, ({ fileName }) => fileName, member);
  const [only] = found;
  if (only === undefined || found.length > 1) {
    const names = found.map(({ fileName }) => fileName);
    throw new DownloadError(memberProblem("zip", names, member));
  }
  if (only.isEncrypted()) throw new DownloadError("the zip file is encrypted");
  return only;
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
      checkUnpackedSize(this.#bytes, this.#packedBytes(), this.#maxBytes);
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
