import { closeSync, openSync, writeSync } from "node:fs";
import { type FileHandle, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { redactedText } from "../../core/text/redaction.ts";
import { messageOf, StoreError } from "../../errors.ts";
import { systemTime } from "../../time/system-time.ts";
import type { Time } from "../../time/time.ts";
import type { EmittedEvent } from "../emitted-event.ts";
import { rotatedFiles, rotatedName } from "../rotated-files.ts";
import type { Sink } from "../sink.ts";
import { LineBuffer } from "./line-buffer.ts";
import { warnOfLostFile } from "./lost-file.ts";
import { type BatchWriter, PartialWriteError, QueuedSink, type QueueOptions } from "./queued-sink.ts";

/** Options of `jsonlSink`. */
export interface JsonlSinkOptions extends QueueOptions {
  /** A larger file is renamed to `<file>.<time>-<digits>`: a whole number of bytes, at least 1024. @default 67_108_864 */
  readonly maxBytes?: number | undefined;
  /** Renamed files that are kept, the newest ones: 1 to 1000. @default 8 */
  readonly keep?: number | undefined;
}

const MAX_BYTES = 64 * 2 ** 20;
const KEEP = 8;
const NEWLINE = 0x0a;
/** Events per write, about two megabytes. Writing them does not block the event loop, because they are encoded already. */
const BATCH_EVENTS = 4096;

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
  return new QueuedSink("jsonl", writer, { ...options, batchEvents: BATCH_EVENTS });
}

/** The items of the queue are the lengths of the encoded lines in bytes. */
class JsonlWriter implements BatchWriter<number> {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  readonly #time: Time;
  #file: FileHandle | undefined;
  /** The inode of the open file: the path may later lead to another file. */
  #inode: bigint | undefined;
  #bytes = 0;
  readonly #lines = new LineBuffer();
  #isWriting = false;
  /** Lines that `write` has taken and not begun to write. `writeSync` writes them if the process ends before that. */
  #notWritten: Buffer | undefined;
  /** Why `writeSync` could not write the lines that it has taken from `write`. */
  #syncError: unknown;
  /** The file ends within a line, because a process was killed or the disk was full. The next write begins a new line. */
  #isTorn = false;
  #hasWarned = false;
  #hasWarnedOfLoss = false;

  constructor(path: string, maxBytes: number, keep: number, time: Time) {
    // The program may change its working directory later.
    this.#path = resolve(path);
    this.#maxBytes = maxBytes;
    this.#keep = keep;
    this.#time = time;
  }

  async open(): Promise<void> {
    await mkdir(dirname(this.#path), { recursive: true });
    // Opened for reading too, to find a torn last line. Only for the owner: host names show what a user works on.
    const file = await open(this.#path, "a+", 0o600);
    this.#file = file;
    const { size, ino } = await file.stat({ bigint: true });
    this.#inode = ino;
    await this.#findEnd(file, Number(size));
  }

  async #findEnd(file: FileHandle, size: number): Promise<void> {
    const last = Buffer.alloc(1);
    if (size > 0) await file.read(last, 0, 1, size - 1);
    this.#bytes = size;
    this.#isTorn = size > 0 && last[0] !== NEWLINE;
  }

  encode({ body, envelope }: EmittedEvent): number {
    return this.#lines.append(body, envelope);
  }

  async write(items: readonly number[]): Promise<void> {
    const lines = this.#takeLines(items);
    this.#isWriting = true;
    this.#notWritten = lines;
    try {
      await this.#prepareFile(lines.length).catch(error => {
        // Otherwise `writeSync` has taken the lines, and its result counts.
        if (this.#notWritten !== undefined) throw error;
      });
      if (this.#notWritten !== undefined) await this.#writeLines(lines);
      else if (this.#syncError !== undefined) throw this.#syncError;
    } finally {
      this.#isWriting = false;
      // If the file could not be opened, the lines are lost: their memory is used for other lines now.
      this.#notWritten = undefined;
      this.#syncError = undefined;
      this.#lines.release();
    }
  }

  /** Opens the file again if its path leads to another file, and rotates it if it would become too large. */
  async #prepareFile(addedBytes: number): Promise<void> {
    const found = await ifExists(stat(this.#path, { bigint: true }));
    // Another process may have rotated the file, or a user deleted it.
    if (this.#file !== undefined && found?.ino !== this.#inode) {
      await this.#warnIfDeleted(this.#file);
      await this.close();
    }
    if (this.#file === undefined) await this.open();
    // Other processes may have written to it, and one may have been killed within a line.
    else if (found !== undefined && Number(found.size) !== this.#bytes)
      await this.#findEnd(this.#file, Number(found.size));
    if (this.#bytes > 0 && this.#bytes + addedBytes > this.#maxBytes) await this.#rotate();
  }

  /** A file that was renamed has a link: it was rotated by another process, and its events are in the new name. */
  async #warnIfDeleted(file: FileHandle): Promise<void> {
    if (this.#hasWarnedOfLoss || (await file.stat()).nlink > 0) return;
    this.#hasWarnedOfLoss = true;
    warnOfLostFile(this.#path);
  }

  async #writeLines(lines: Buffer): Promise<void> {
    this.#notWritten = undefined;
    const file = this.#file;
    if (file === undefined) throw new Error(`${this.#path} was closed`);
    const bytes = this.#afterTornLine(lines);
    let written = 0;
    try {
      while (written < bytes.length) written += (await file.write(bytes, written)).bytesWritten;
    } catch (error) {
      throw new PartialWriteError(completeLines(bytes, written), error);
    } finally {
      this.#countWritten(bytes, written);
    }
  }

  /** Without rotation and without looking at the path again: the process is about to end. */
  writeSync(items: readonly number[]): void {
    const taken = this.#notWritten;
    const lines = this.#takeLines(items);
    this.#notWritten = undefined;
    try {
      if (taken !== undefined) this.#writeLinesSync(taken);
    } catch (error) {
      this.#syncError = error;
    }
    try {
      this.#writeLinesSync(lines);
    } finally {
      if (!this.#isWriting) this.#lines.release();
    }
  }

  #writeLinesSync(lines: Buffer): void {
    if (lines.length === 0) return;
    const fd = this.#file?.fd ?? openSync(this.#path, "a", 0o600);
    const bytes = this.#afterTornLine(lines);
    let written = 0;
    try {
      while (written < bytes.length) written += writeSync(fd, bytes, written);
    } catch (error) {
      throw new PartialWriteError(completeLines(bytes, written), error);
    } finally {
      this.#countWritten(bytes, written);
      if (this.#file === undefined) closeSync(fd);
    }
  }

  #takeLines(items: readonly number[]): Buffer {
    return this.#lines.take(items.reduce((sum, bytes) => sum + bytes, 0));
  }

  #afterTornLine(lines: Buffer): Buffer {
    return this.#isTorn ? Buffer.concat([Buffer.from([NEWLINE]), lines]) : lines;
  }

  #countWritten(bytes: Buffer, written: number): void {
    if (written > 0) this.#isTorn = bytes[written - 1] !== NEWLINE;
    this.#bytes += written;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  /**
   * Renames the file. The new name is unique, so several processes can rotate at once without losing events. If it
   * fails, the events are written to the same file.
   */
  async #rotate(): Promise<void> {
    await this.close();
    try {
      await ifExists(rename(this.#path, await rotatedName(this.#path, this.#time.wallMs())));
      const rotated = await rotatedFiles(this.#path);
      for (const old of rotated.slice(0, Math.max(0, rotated.length - this.#keep))) await ifExists(unlink(old));
    } catch (error) {
      this.#warnNotRotated(error);
    }
    await this.open();
  }

  #warnNotRotated(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      `rotating the telemetry file ${this.#path} failed: ${redactedText(messageOf(error))}; it may grow beyond maxBytes, and more files than keep may stay`,
      "DocstokgWarning",
    );
  }
}

/** The number of lines in the written part. */
function completeLines(bytes: Buffer, written: number): number {
  let lines = 0;
  for (let at = 0; at < written; at += 1) if (bytes[at] === NEWLINE) lines += 1;
  // The first newline only ends a torn line.
  return bytes[0] === NEWLINE && written > 0 ? lines - 1 : lines;
}

async function ifExists<Value>(access: Promise<Value>): Promise<Value | undefined> {
  try {
    return await access;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
