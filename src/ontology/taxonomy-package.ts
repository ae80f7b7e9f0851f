import { stat } from "node:fs/promises";
import { posix } from "node:path";
import { crc32 } from "node:zlib";
import { DownloadError, messageOf } from "../errors.ts";
import { printableName } from "./archive-member.ts";
import { FactCollector, type OntologyFacts } from "./parsing/ontology-facts.ts";
import type { OnStatement } from "./parsing/statement.ts";
import { SyntaxProblem } from "./parsing/syntax-problem.ts";
import { PackageCatalog, PackageMetadata, SchemaConcepts } from "./parsing/taxonomy-xml.ts";
import { encodingOf, TextDecoding } from "./parsing/text-decoding.ts";
import { type XmlHandler, XmlReader } from "./parsing/xml-reader.ts";
import { checkUnpackedSize } from "./unpack-limits.ts";
import { type Entry, entryStream, openZipFile, type ZipFile, zipEntries } from "./zip-file.ts";

/** What a valid package contains. */
export interface TaxonomyPackage {
  /** Undefined unless all files of the package were read. */
  readonly facts: OntologyFacts | undefined;
  readonly version: string | undefined;
  readonly concepts: number;
}

export interface PackageInspectionOptions {
  /** Whether every file of the package is unpacked and checked, or only its metadata. */
  readonly isFull: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Receives a statement for each concept. */
  readonly onStatement?: OnStatement | undefined;
  /** Awaited after each file of the package. */
  readonly onChunk?: (() => Promise<void>) | undefined;
}

/** The metadata of a package: in the folder at the top of the zip file, or at the top itself. */
const METADATA = /^(?:[^/]+\/)?META-INF\/taxonomyPackage\.xml$/;
const CATALOG_NAME = "catalog.xml";
/** Packages of supervisory authorities have about 40,000 files. */
const MAX_FILES = 100_000;
/**
 * A file of a real package has about 1000 packed bytes. A package with more than `FREE_FILES` files that has fewer than
 * `BYTES_PER_FILE_MIN` bytes for each further file was made to cost time.
 */
const FREE_FILES = 1000;
const BYTES_PER_FILE_MIN = 400;
const ENCODING_BYTES = 200;

/** Whether a zip file is an XBRL taxonomy package, which is used as a whole and never unpacked. */
export async function isTaxonomyPackage(path: string): Promise<boolean> {
  try {
    const { size } = await stat(path);
    const zip = await openZipFile(path);
    try {
      if (zip.entryCount > maxFiles(size)) return false;
      for await (const { fileName } of zipEntries(zip)) if (METADATA.test(fileName)) return true;
      return false;
    } finally {
      zip.close();
    }
  } catch (error) {
    if (error instanceof Error && "syscall" in error) throw error;
    // The zip file is damaged: `unpack` reports the problem.
    return false;
  }
}

/**
 * Checks a package: its metadata, that its entry points are in it, every checksum, and that its schemas are well-formed.
 * Returns the problem as a text if it is invalid.
 */
export async function inspectTaxonomyPackage(
  path: string,
  options: PackageInspectionOptions,
): Promise<TaxonomyPackage | string> {
  let zip: ZipFile | undefined;
  try {
    zip = await openZipFile(path);
    return await inspectZip(zip, (await stat(path)).size, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    // Disk errors keep their own type: the package may be valid.
    if (error instanceof Error && "syscall" in error) throw error;
    return messageOf(error).replace(/\s+/g, " ").slice(0, 300);
  } finally {
    zip?.close();
  }
}

async function inspectZip(
  zip: ZipFile,
  packedBytes: number,
  { isFull, signal, onStatement, onChunk }: PackageInspectionOptions,
): Promise<TaxonomyPackage> {
  const files = await filesOf(zip, packedBytes);
  const metadataFile = [...files.values()].find(({ fileName }) => METADATA.test(fileName));
  if (metadataFile === undefined) throw new SyntaxProblem("no META-INF/taxonomyPackage.xml");
  const metadata = new PackageMetadata();
  await readXml(zip, metadataFile, metadata, signal);
  const { identifier, name, version, publicationDate, licence } = metadata;
  if (identifier === undefined) throw new SyntaxProblem(`${metadataFile.fileName} has no identifier`);
  await checkEntryPoints(zip, files, metadataFile, metadata, signal);
  const release = version ?? publicationDate;
  if (!isFull) return { facts: undefined, version: release, concepts: 0 };

  const collector = new FactCollector();
  const receive: OnStatement = (...statement) => {
    collector.collect(...statement);
    onStatement?.(...statement);
  };
  for (const file of files.values()) {
    if (/\.xsd$/i.test(file.fileName)) await readXml(zip, file, new SchemaConcepts(receive), signal);
    else await readBytes(zip, file, signal);
    await onChunk?.();
  }
  const facts: OntologyFacts = {
    ...collector.facts(),
    ontology_iri: identifier,
    version_info: version ?? null,
    date: publicationDate ?? null,
    title: name ?? null,
    licence: licence ?? null,
  };
  return { facts, version: release, concepts: facts.concepts };
}

/** The files of a package by name. Their sizes come from the central directory; yauzl checks them while it unpacks. */
async function filesOf(zip: ZipFile, packedBytes: number): Promise<ReadonlyMap<string, Entry>> {
  const limit = maxFiles(packedBytes);
  if (zip.entryCount > limit)
    throw new DownloadError(`the package has ${zip.entryCount} files in ${packedBytes} bytes, limit is ${limit} files`);
  const files = new Map<string, Entry>();
  let bytes = 0;
  for await (const entry of zipEntries(zip)) {
    if (entry.fileName.endsWith("/")) continue;
    if (entry.isEncrypted()) throw new DownloadError("the package is encrypted");
    bytes += entry.uncompressedSize;
    checkUnpackedSize(bytes, packedBytes, Number.POSITIVE_INFINITY);
    files.set(entry.fileName, entry);
  }
  return files;
}

function maxFiles(packedBytes: number): number {
  return Math.min(MAX_FILES, FREE_FILES + Math.floor(packedBytes / BYTES_PER_FILE_MIN));
}

/** If the catalogue maps an entry point to a file of the package, the file must exist. Others are on the network. */
async function checkEntryPoints(
  zip: ZipFile,
  files: ReadonlyMap<string, Entry>,
  { fileName }: Entry,
  { entryPoints }: PackageMetadata,
  signal: AbortSignal | undefined,
): Promise<void> {
  const folder = posix.dirname(fileName);
  const catalog = new PackageCatalog();
  const catalogFile = files.get(`${folder}/${CATALOG_NAME}`);
  if (catalogFile !== undefined) await readXml(zip, catalogFile, catalog, signal);
  for (const url of new Set(entryPoints)) {
    const isRelative = !URL.canParse(url);
    const address = catalog.addressOf(url) ?? (isRelative ? url : undefined);
    if (address === undefined) continue;
    const path = posix.join(folder, address);
    if (!files.has(path) && !files.has(decoded(path)))
      throw new SyntaxProblem(`entry point ${url.slice(0, 200)} is not in the package`);
  }
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

async function readXml(zip: ZipFile, file: Entry, handler: XmlHandler, signal: AbortSignal | undefined): Promise<void> {
  const reader = new XmlReader(handler);
  let decoding: TextDecoding | undefined;
  try {
    await readBytes(zip, file, signal, chunk => {
      decoding ??= new TextDecoding(encodingOf(chunk.subarray(0, ENCODING_BYTES)));
      reader.write(decoding.decode(chunk));
    });
    reader.write(decoding?.end() ?? "");
    reader.end();
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    throw new SyntaxProblem(`${printableName(file.fileName)}: ${error.message}`);
  }
}

async function readBytes(
  zip: ZipFile,
  file: Entry,
  signal: AbortSignal | undefined,
  onChunk?: (chunk: Buffer) => void,
): Promise<void> {
  let crc = 0;
  for await (const chunk of await entryStream(zip, file)) {
    signal?.throwIfAborted();
    crc = crc32(chunk, crc);
    onChunk?.(chunk);
  }
  if (crc !== file.crc32) throw new DownloadError(`${printableName(file.fileName)}: CRC-32 mismatch`);
}
