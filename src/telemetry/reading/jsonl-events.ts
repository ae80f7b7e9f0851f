import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { fieldProblem, isEventType } from "../event-fields.ts";
import type { TelemetryEvent } from "../events.ts";
import { rotatedFiles } from "../rotated-files.ts";
import { SkippedEvents } from "./skipped-events.ts";

/** Ours are a few hundred bytes. */
const LINE_BYTES_MAX = 2 ** 20;
const NEWLINE = 0x0a;

/** The file with those that were put aside for it, oldest first. */
export async function jsonlFiles(file: string): Promise<readonly string[]> {
  const isThere = (await stat(file).catch(() => undefined)) !== undefined;
  return [...(await rotatedFiles(file)), ...(isThere ? [file] : [])];
}

/** Every event of the files, as it stands there; of one run where that is asked for. */
export async function* jsonlEvents(
  files: readonly string[],
  skipped: SkippedEvents,
  runId?: string,
): AsyncGenerator<TelemetryEvent> {
  for (const file of files) {
    for await (const line of linesOf(file, skipped)) {
      const event = eventOf(line, skipped, runId);
      if (event !== undefined) yield event;
    }
  }
}

/** As our sink writes them, the envelope first: enough to tell runs apart without reading the rest. */
const ENVELOPE = /^\{"ts":(\d{1,15}(?:\.\d+)?),"event_type":"[^"\\]*","run_id":"([^"\\]*)"/;

/** Which run each event of the files belongs to, and when it happened. What is no event is passed over. */
export async function* jsonlEnvelopes(
  files: readonly string[],
): AsyncGenerator<{ readonly runId: string; readonly ts: number }> {
  const skipped = new SkippedEvents();
  for (const file of files) {
    for await (const line of linesOf(file, skipped)) {
      const [, ts, runId] = ENVELOPE.exec(line) ?? [];
      if (ts !== undefined && runId !== undefined) {
        yield { runId, ts: Number(ts) };
        continue;
      }
      const event = eventOf(line, skipped, undefined);
      if (event !== undefined) yield { runId: event.run_id, ts: event.ts };
    }
  }
}

function eventOf(line: string, skipped: SkippedEvents, runId: string | undefined): TelemetryEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    skipped.unreadable += 1;
    return undefined;
  }
  if (typeof value !== "object" || value === null) {
    skipped.unreadable += 1;
    return undefined;
  }
  const event = value as Readonly<Record<string, unknown>>;
  const { ts, event_type: type, run_id, config_hash } = event;
  const isOurs =
    Number.isFinite(ts) && typeof type === "string" && typeof run_id === "string" && typeof config_hash === "string";
  if (isOurs && runId !== undefined && run_id !== runId) return undefined;
  if (!isOurs || (isEventType(type) && fieldProblem(type, event) !== undefined)) skipped.unreadable += 1;
  else if (!isEventType(type)) skipped.countUnknown(type);
  else return event as unknown as TelemetryEvent;
  return undefined;
}

/** Lines without their ends. One that is too long to be ours is skipped, and never held in memory. */
async function* linesOf(file: string, skipped: SkippedEvents): AsyncGenerator<string> {
  let carried: Buffer[] = [];
  let carriedBytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
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
  // A last line without an end: whole, when somebody has edited the file; torn otherwise, and then no JSON.
  else yield Buffer.concat(carried).toString("utf8");
}

function joined(before: readonly Buffer[], last: Buffer): string {
  return (before.length === 0 ? last : Buffer.concat([...before, last])).toString("utf8");
}
