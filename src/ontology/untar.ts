import { open } from "node:fs/promises";
import { DownloadError } from "../errors.ts";
import { memberProblem, ontologyMembers } from "./archive-member.ts";

const BLOCK_BYTES = 512;
const MAX_ENTRIES = 10_000;
const CHUNK_BYTES = 65_536;
/** A longer name, or a longer record with other attributes, is not read. */
const NAME_BYTES_MAX = 65_536;
const REGULAR = 0x30;
/** The next entry has a name of more than 100 bytes: the content of this one (GNU), or its record `path` (POSIX). */
const GNU_NAME = 0x4c;
const EXTENDED = 0x78;

interface TarEntry {
  readonly name: string;
  readonly start: number;
  readonly bytes: number;
}

/** The content of the only ontology in a tar file, or of the entry that `member` names. Names never become paths. */
export async function* untar(path: string, member: string | undefined): AsyncGenerator<Uint8Array> {
  const file = await open(path);
  try {
    const found = ontologyMembers(await entriesOf(file), ({ name }) => name, member);
    const [only] = found;
    if (only === undefined || found.length > 1) {
      const names = found.map(({ name }) => name);
      throw new DownloadError(memberProblem("tar", names, member));
    }
    for (let at = 0; at < only.bytes; ) {
      const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, only.bytes - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, only.start + at);
      if (bytesRead === 0) throw new DownloadError("the tar file is damaged: it ends inside a file");
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

type TarFile = Awaited<ReturnType<typeof open>>;

/** The regular files of the archive. A block of zeros ends the archive. */
async function entriesOf(file: TarFile): Promise<readonly TarEntry[]> {
  const entries: TarEntry[] = [];
  const header = Buffer.alloc(BLOCK_BYTES);
  /** The name of the next entry, if an entry before it has said so. */
  let longName: string | undefined;
  for (let at = 0, count = 0; ; count += 1) {
    const { bytesRead } = await file.read(header, 0, BLOCK_BYTES, at);
    if (bytesRead === 0 || header.every(byte => byte === 0)) return entries;
    if (bytesRead < BLOCK_BYTES || !hasValidChecksum(header))
      throw new DownloadError("the tar file is damaged: invalid header");
    if (count >= MAX_ENTRIES) throw new DownloadError(`the tar file has more than ${MAX_ENTRIES} entries`);
    const bytes = octal(header.subarray(124, 136));
    const type = header[156];
    if (type === GNU_NAME || type === EXTENDED) {
      const content = await contentOf(file, at + BLOCK_BYTES, bytes);
      longName = (type === GNU_NAME ? textOf(content) : pathIn(content)) || longName;
    } else {
      // Entries of other types, such as links, are skipped.
      if (type === REGULAR || type === 0)
        entries.push({ name: longName ?? nameIn(header), start: at + BLOCK_BYTES, bytes });
      longName = undefined;
    }
    at += BLOCK_BYTES + Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
  }
}

function nameIn(header: Uint8Array): string {
  const prefix = textOf(header.subarray(345, 500));
  const name = textOf(header.subarray(0, 100));
  return prefix === "" ? name : `${prefix}/${name}`;
}

/** The content of an entry; empty if it is longer than a name can be. */
async function contentOf(file: TarFile, start: number, bytes: number): Promise<Uint8Array> {
  if (bytes > NAME_BYTES_MAX) return Buffer.alloc(0);
  const content = Buffer.alloc(bytes);
  const { bytesRead } = await file.read(content, 0, bytes, start);
  return content.subarray(0, bytesRead);
}

/** The `path` of an extended header: records such as `18 path=a/long.owl` and a newline, each with its own length. */
function pathIn(content: Uint8Array): string | undefined {
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const length = Number(textOf(content.subarray(at, Math.max(at, space))));
    // The length counts the whole record, so a shorter one would read the same bytes again and again.
    if (space < 0 || !Number.isInteger(length) || length <= space - at) return undefined;
    const record = textOf(content.subarray(space + 1, at + length - 1));
    if (record.startsWith("path=")) return record.slice("path=".length);
    at += length;
  }
  return undefined;
}

function hasValidChecksum(header: Uint8Array): boolean {
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  return sum === octal(header.subarray(148, 156));
}

function octal(field: Uint8Array): number {
  const value = Number.parseInt(textOf(field).trim() || "0", 8);
  if (!Number.isSafeInteger(value) || value < 0) throw new DownloadError("the tar file is damaged: invalid size");
  return value;
}

function textOf(field: Uint8Array): string {
  const end = field.indexOf(0);
  return Buffer.from(end < 0 ? field : field.subarray(0, end)).toString("utf8");
}
