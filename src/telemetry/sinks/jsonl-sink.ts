import { type FileHandle, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf, StoreError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import type { TelemetryEvent } from "../events.ts";
import { rotatedFiles, rotatedName } from "../rotated-files.ts";
import type { Sink } from "../sink.ts";
import { type BatchWriter, QueuedSink, type QueueOptions } from "./queued-sink.ts";

/** Options of `jsonlSink`. */
export interface JsonlSinkOptions extends QueueOptions {
  /** A larger file is renamed to `<file>.<time>-<digits>`: a whole number of bytes, at least 1024. @default 67_108_864 */
  readonly maxBytes?: number | undefined;
  /** Renamed files that are kept, the newest ones: 1 to 1000. @default 8 */
  readonly keep?: number | undefined;
}

const MAX_BYTES = 64 * 2 ** 20;
const KEEP = 8;

/** Writes one event per line as JSON. Rejects with a StoreError when the file cannot be opened. */
export async function jsonlSink(file: string, options: JsonlSinkOptions = {}): Promise<Sink> {
  const { maxBytes = MAX_BYTES, keep = KEEP, time = systemTime } = options;
  if (!(Number.isInteger(maxBytes) && maxBytes >= 1024))
    throw new RangeError(`maxBytes must be a whole number of at least 1024, not ${maxBytes}`);
  if (!(Number.isInteger(keep) && keep >= 1 && keep <= 1000))
    throw new RangeError(`keep must be a whole number from 1 to 1000, not ${keep}`);
  const writer = new JsonlWriter(file, maxBytes, keep, time);
  try {
    await writer.open();
  } catch (cause) {
    const reason = messageOf(cause);
    throw new StoreError(`telemetry cannot be written to ${file}: ${reason}`, { cause });
  }
  return new QueuedSink("jsonl", writer, options);
}

class JsonlWriter implements BatchWriter {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  readonly #time: Time;
  #file: FileHandle | undefined;
  /** The inode of the open file: the path may later lead to another file. */
  #identity: bigint | undefined;
  #bytes = 0;
  /** The file ends within a line, because a process was killed or the disk was full. The next write begins a new line. */
  #isTorn = false;

  constructor(path: string, maxBytes: number, keep: number, time: Time) {
    this.#path = path;
    this.#maxBytes = maxBytes;
    this.#keep = keep;
    this.#time = time;
  }

  async open(): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    // Opened for reading too, to find a torn last line. Only for the owner: host names show what a user works on.
    const file = await open(this.#path, "a+", 0o600);
    this.#file = file;
    const { size: bigSize, ino } = await file.stat({ bigint: true });
    const size = Number(bigSize);
    this.#identity = ino;
    const last = Buffer.alloc(1);
    if (size > 0) await file.read(last, 0, 1, size - 1);
    this.#bytes = size;
    this.#isTorn = size > 0 && last[0] !== 0x0a;
  }

  async write(events: readonly TelemetryEvent[]): Promise<void> {
    const lines = events.map(event => `${JSON.stringify(event)}\n`).join("");
    const bytes = Buffer.from(this.#isTorn ? `\n${lines}` : lines);
    // Another process may have rotated the file, or a user deleted it.
    if (this.#file !== undefined && (await identity(this.#path)) !== this.#identity) await this.close();
    if (this.#file === undefined) await this.open();
    if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) await this.#rotate();
    this.#isTorn = true;
    await this.#file?.appendFile(bytes);
    this.#isTorn = false;
    this.#bytes += bytes.length;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  /** Renames the file. The new name is unique, so several processes can rotate at once without losing events. */
  async #rotate(): Promise<void> {
    await this.close();
    await ifExists(rename(this.#path, rotatedName(this.#path, this.#time.wallMs())));
    const rotated = await rotatedFiles(this.#path);
    for (const old of rotated.slice(0, Math.max(0, rotated.length - this.#keep))) await ifExists(unlink(old));
    await this.open();
  }
}

async function identity(path: string): Promise<bigint | undefined> {
  try {
    return (await stat(path, { bigint: true })).ino;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function ifExists(done: Promise<void>): Promise<void> {
  try {
    await done;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
