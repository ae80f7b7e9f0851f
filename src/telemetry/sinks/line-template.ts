import { EVENT_SPECS } from "../event-fields.ts";
import type { Envelope, EventBody } from "../events.ts";
import { NO_SPACE, NUMBER_BYTES_MAX, utf8, writeBytes, writeNumber, writeValue } from "./json-bytes.ts";

const START = utf8('{"ts":');
const END = utf8("}\n");
/** The name of each field as it stands before its value. */
const NAMES = new Map(
  Object.values(EVENT_SPECS).flatMap(({ fields }) => Object.keys(fields).map(name => [name, nameBytes(name)] as const)),
);

/** The last line of one event type. The next one is made from it by writing the fields whose values differ. */
export class LineTemplate {
  /** The line begins at 0. */
  readonly bytes: Buffer;
  /** Holds a new value until its length was compared with that of the old one. */
  readonly #scratch: Uint8Array;
  readonly #capacity: number;
  #ts = 0;
  #tsEnd = 0;
  #runId = "";
  #configHash = "";
  readonly #names: string[] = [];
  readonly #values: unknown[] = [];
  /** Where each field ends. A field that is not shown is empty. */
  readonly #ends: number[] = [];
  /** Where the first field begins, behind the envelope. */
  #fieldsStart = 0;
  #length = 0;

  constructor(size: number) {
    this.bytes = Buffer.alloc(size);
    this.#scratch = new Uint8Array(size);
    this.#capacity = size - NUMBER_BYTES_MAX - END.length;
  }

  /** Makes `bytes` the line of this event. Returns its length, or NO_SPACE if it is longer than the template. */
  update(body: EventBody, envelope: Envelope): number {
    if (!this.#setEnvelope(envelope)) return this.#build(body, envelope);
    const fields = body as unknown as Readonly<Record<string, unknown>>;
    const names = this.#names;
    const values = this.#values;
    let at = 0;
    for (const name in fields) {
      if (names[at] !== name) return this.#build(body, envelope);
      const value = fields[name];
      if (values[at] !== value && !this.#replace(at, name, value)) return this.#forget();
      at += 1;
    }
    return at === names.length ? this.#length : this.#build(body, envelope);
  }

  /** False if the envelope differs in more than the digits of `ts`. */
  #setEnvelope({ ts, run_id, config_hash }: Envelope): boolean {
    if (run_id !== this.#runId || config_hash !== this.#configHash || this.#length === 0) return false;
    if (ts === this.#ts) return true;
    const length = writeNumber(ts, this.#scratch, 0);
    if (length !== this.#tsEnd - START.length) return false;
    for (let at = 0; at < length; at += 1) this.bytes[START.length + at] = this.#scratch[at] as number;
    this.#ts = ts;
    return true;
  }

  /** False if there is no space. */
  #replace(index: number, name: string, value: unknown): boolean {
    const field = this.#scratch;
    const bytes = this.bytes;
    const length = writeField(name, value, field, this.#capacity);
    if (length === NO_SPACE) return false;
    const from = index === 0 ? this.#fieldsStart : (this.#ends[index - 1] as number);
    const end = this.#ends[index] as number;
    const added = length - (end - from);
    if (added !== 0) {
      if (this.#length + added > bytes.length) return false;
      bytes.copyWithin(end + added, end, this.#length);
      this.#length += added;
      for (let at = index; at < this.#ends.length; at += 1) (this.#ends[at] as number) += added;
    }
    for (let at = 0; at < length; at += 1) bytes[from + at] = field[at] as number;
    this.#values[index] = value;
    return true;
  }

  #build(body: EventBody, { ts, run_id, config_hash }: Envelope): number {
    const { bytes } = this;
    const envelope = utf8(`,${JSON.stringify({ event_type: body.event_type, run_id, config_hash }).slice(1, -1)}`);
    if (START.length + envelope.length > this.#capacity) return this.#forget();
    this.#forget();
    this.#ts = ts;
    this.#runId = run_id;
    this.#configHash = config_hash;
    this.#tsEnd = writeNumber(ts, bytes, writeBytes(START, bytes, 0));
    this.#fieldsStart = writeBytes(envelope, bytes, this.#tsEnd);
    let end = this.#fieldsStart;
    for (const [name, value] of Object.entries(body)) {
      const length = writeField(name, value, this.#scratch, this.#capacity);
      if (length === NO_SPACE || end + length > this.#capacity) return this.#forget();
      for (let at = 0; at < length; at += 1) bytes[end + at] = this.#scratch[at] as number;
      end += length;
      this.#names.push(name);
      this.#values.push(value);
      this.#ends.push(end);
    }
    this.#length = writeBytes(END, bytes, end);
    return this.#length;
  }

  /** The next line is built from the beginning. */
  #forget(): typeof NO_SPACE {
    this.#length = 0;
    this.#names.length = 0;
    this.#values.length = 0;
    this.#ends.length = 0;
    return NO_SPACE;
  }
}

/** Writes a name and its value. Returns 0 for a field that is not shown, and NO_SPACE for one that is too long. */
function writeField(name: string, value: unknown, into: Uint8Array, capacity: number): number {
  if (value === undefined || isEnvelope(name)) return 0;
  const before = NAMES.get(name) ?? nameBytes(name);
  return before.length > capacity ? NO_SPACE : writeValue(value, into, writeBytes(before, into, 0), capacity);
}

function nameBytes(name: string): Uint8Array {
  return utf8(`,${JSON.stringify(name)}:`);
}

function isEnvelope(name: string): boolean {
  return name === "ts" || name === "event_type" || name === "run_id" || name === "config_hash";
}
