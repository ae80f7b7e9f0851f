import type { Envelope, EventBody } from "../events.ts";
import { NO_SPACE } from "./json-bytes.ts";
import { LineTemplate } from "./line-template.ts";

/** Longer lines are rare: an error message of several thousand characters. */
const TEMPLATE_BYTES = 4096;

/**
 * Encodes events as lines of JSON, with the envelope first. The result is the same as that of `JSON.stringify`. The
 * bytes of the last line of each event type are kept: most fields of the next line are equal, and only the others are
 * written.
 */
export class EventEncoder {
  readonly #templates = new Map<string, LineTemplate>();

  /** Writes the event to `into` at this place. Returns the end of the line, or NO_SPACE. */
  encode(body: EventBody, envelope: Envelope, into: Buffer, start: number): number {
    const template = this.#templateOf(body.event_type);
    const length = template.update(body, envelope);
    if (length === NO_SPACE) return encodeLong(body, envelope, into, start);
    if (into.length - start < length) return NO_SPACE;
    template.bytes.copy(into, start, 0, length);
    return start + length;
  }

  #templateOf(type: string): LineTemplate {
    const known = this.#templates.get(type);
    if (known !== undefined) return known;
    const made = new LineTemplate(TEMPLATE_BYTES);
    this.#templates.set(type, made);
    return made;
  }
}

/** A line that no template has space for. */
function encodeLong(body: EventBody, envelope: Envelope, into: Buffer, start: number): number {
  const { ts, run_id, config_hash } = envelope;
  const { event_type, ...rest } = body;
  const line = `${JSON.stringify({ ...{ ts, event_type, run_id, config_hash }, ...rest, ...{ ts, run_id, config_hash } })}\n`;
  if (into.length - start < Buffer.byteLength(line)) return NO_SPACE;
  return start + into.write(line, start);
}
