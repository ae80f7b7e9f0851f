import { type FileHandle, open, stat } from "node:fs/promises";
import { hasValidFields, withCurrentFields } from "../event-check.ts";
import { isEventType } from "../event-fields.ts";
import type { TelemetryEvent } from "../events.ts";
import { rotatedFiles } from "../rotated-files.ts";
import { SkippedEventCounter } from "./skipped-events.ts";

/** A longer line is skipped without being held in memory. Events of docstokg have a few hundred bytes. */
const LINE_BYTES_MAX = 2 ** 20;
const NEWLINE = 0x0a;

/** The rotated files of a JSONL file, oldest first, and then the file itself. */
export async function jsonlFiles(file: string): Promise<readonly string[]> {
  const exists = (await stat(file).catch(() => undefined)) !== undefined;
  return [...(await rotatedFiles(file)), ...(exists ? [file] : [])];
}

/** Every event of a file and its rotated files in the order of the lines; only those of one run when `runId` is given. */
export async function* jsonlEvents(
  file: string,
  skipped: SkippedEventCounter,
  runId?: string,
): AsyncGenerator<TelemetryEvent> {
  for await (const line of allLinesOf(file, skipped)) {
    const event = eventOf(line, skipped, runId);
    if (event !== undefined) yield event;
  }
}

/** jsonlSink writes the envelope first, so listing runs does not need to parse the whole line. */
const ENVELOPE = /^\{"ts":(\d{1,15}(?:\.\d+)?),"event_type":"([^"\\]*)","run_id":"([^"\\]*)"/;

export interface EventEnvelope {
  readonly runId: string;
  readonly ts: number;
  readonly type: string;
}

/** The run, the time and the type of each event. Lines that are not events are skipped. */
export async function* jsonlEnvelopes(file: string): AsyncGenerator<EventEnvelope> {
  const skipped = new SkippedEventCounter();
  for await (const line of allLinesOf(file, skipped)) {
    const [, ts, type, runId] = ENVELOPE.exec(line) ?? [];
    if (ts !== undefined && type !== undefined && runId !== undefined) {
      yield { runId, ts: Number(ts), type };
      continue;
    }
    const event = eventOf(line, skipped, undefined);
    if (event !== undefined) yield { runId: event.run_id, ts: event.ts, type: event.event_type };
  }
}

function eventOf(line: string, skipped: SkippedEventCounter, runId: string | undefined): TelemetryEvent | undefined {
  const written = parsedObject(line);
  const { ts, event_type: type, run_id, config_hash } = written ?? {};
  const hasEnvelope =
    Number.isFinite(ts) && typeof type === "string" && typeof run_id === "string" && typeof config_hash === "string";
  if (written === undefined || !hasEnvelope) {
    skipped.unreadable += 1;
    return undefined;
  }
  if (runId !== undefined && run_id !== runId) return undefined;
  if (!isEventType(type)) {
    skipped.countUnknown(type);
    return undefined;
  }
  const event = withCurrentFields(type, written);
  if (hasValidFields(type, event)) return event as unknown as TelemetryEvent;
  skipped.unreadable += 1;
  return undefined;
}

function parsedObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of the rotated files, oldest first, and then those of the file itself. */
async function* allLinesOf(file: string, skipped: SkippedEventCounter): AsyncGenerator<string> {
  // Opened first: if it is rotated while the others are read, its path leads to a new file.
  const current = await openIfExists(file);
  try {
    const inode = await inodeOf(current);
    for (const path of await rotatedFiles(file)) {
      const rotated = await openIfExists(path);
      try {
        if (rotated !== undefined && (await inodeOf(rotated)) !== inode) yield* linesOf(rotated, skipped);
      } finally {
        await rotated?.close();
      }
    }
    if (current !== undefined) yield* linesOf(current, skipped);
  } finally {
    await current?.close();
  }
}

/** Undefined for a file that a running program has rotated or deleted. */
async function openIfExists(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

async function inodeOf(file: FileHandle | undefined): Promise<bigint | undefined> {
  return (await file?.stat({ bigint: true }))?.ino;
}

/** The lines without their newline. */
async function* linesOf(file: FileHandle, skipped: SkippedEventCounter): AsyncGenerator<string> {
  let carried: Buffer[] = [];
  let carriedBytes = 0;
  const chunks: AsyncIterable<Buffer> = file.createReadStream({ highWaterMark: 256 * 1024, autoClose: false });
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      const bytes = carriedBytes + at - from;
      if (bytes > LINE_BYTES_MAX) skipped.unreadable += 1;
      else if (bytes > 0) yield joined(carried, chunk.subarray(from, at));
      carried = [];
      carriedBytes = 0;
      from = at + 1;
    }
    carriedBytes += chunk.length - from;
    if (carriedBytes <= LINE_BYTES_MAX) carried.push(chunk.subarray(from));
    else carried = [];
  }
  if (carriedBytes === 0) return;
  if (carriedBytes > LINE_BYTES_MAX) skipped.unreadable += 1;
  // The last line has no newline: it is complete if an editor removed the newline, and invalid JSON if a write was cut.
  else yield Buffer.concat(carried).toString("utf8");
}

function joined(before: readonly Buffer[], last: Buffer): string {
  return (before.length === 0 ? last : Buffer.concat([...before, last])).toString("utf8");
}
