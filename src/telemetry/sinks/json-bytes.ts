/** Writes values as JSON into bytes, without strings in between. Each function returns the end of what it has written. */

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const DOT = 0x2e;
const ZERO = 0x30;
/** A space and `~`: the first and the last character of ASCII that are printed. */
const PRINTED_MIN = 0x20;
const PRINTED_MAX = 0x7e;
const TRUE = utf8("true");
const FALSE = utf8("false");
/** A control character is written as `\u001f`. */
const BYTES_PER_CHARACTER_MAX = 6;
/** The longest number has 25 bytes. */
export const NUMBER_BYTES_MAX = 32;
/** Larger numbers lose digits when they are divided by 10. */
const WHOLE_NUMBERS_MAX = 1e15;
const BILLION = 1e9;
/** Decimals are written as whole thousandths, if these are fewer than this. */
const THOUSANDTHS_MAX = 1e9;

/** Returned when there is not enough space. */
export const NO_SPACE = -1;

/** May write up to NUMBER_BYTES_MAX bytes beyond `capacity`. */
export function writeValue(value: unknown, into: Uint8Array, at: number, capacity: number): number {
  if (typeof value === "number") return at > capacity ? NO_SPACE : writeNumber(value, into, at);
  if (typeof value === "string") return writeText(value, into, at, capacity);
  if (typeof value === "boolean") return at > capacity ? NO_SPACE : writeBytes(value ? TRUE : FALSE, into, at);
  // No event has such a field.
  const json = utf8(JSON.stringify(value) ?? "null");
  return at + json.length > capacity ? NO_SPACE : writeBytes(json, into, at);
}

function writeText(text: string, into: Uint8Array, start: number, capacity: number): number {
  if (start + text.length * BYTES_PER_CHARACTER_MAX > capacity) return NO_SPACE;
  let at = start;
  into[at++] = QUOTE;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < PRINTED_MIN || code > PRINTED_MAX || code === QUOTE || code === BACKSLASH)
      return writeBytes(utf8(JSON.stringify(text)), into, start);
    into[at++] = code;
  }
  into[at++] = QUOTE;
  return at;
}

/** Writes up to NUMBER_BYTES_MAX bytes. */
export function writeNumber(value: number, into: Uint8Array, start: number): number {
  if (Number.isInteger(value) && value >= 0 && value < WHOLE_NUMBERS_MAX) return writeInteger(value, into, start);
  // Times in ms are whole microseconds. This decimal is the shortest that gives the same number.
  const thousandths = Math.round(value * 1000);
  if (thousandths <= 0 || thousandths >= THOUSANDTHS_MAX || thousandths / 1000 !== value)
    return writeBytes(utf8(JSON.stringify(value)), into, start);
  const whole = Math.trunc(thousandths / 1000);
  let rest = thousandths - whole * 1000;
  let at = writeInteger(whole, into, start);
  into[at++] = DOT;
  for (let unit = 100; rest > 0; unit /= 10) {
    const digit = Math.trunc(rest / unit);
    into[at++] = ZERO + digit;
    rest -= digit * unit;
  }
  return at;
}

function writeInteger(value: number, into: Uint8Array, start: number): number {
  if (value >= BILLION) {
    const billions = Math.trunc(value / BILLION);
    const at = writeInteger(billions, into, start);
    writeDigits(value - billions * BILLION, into, at, at + 9);
    return at + 9;
  }
  let end = start + 1;
  for (let bound = 10; value >= bound; bound *= 10) end += 1;
  writeDigits(value, into, start, end);
  return end;
}

/** Writes the last digits of a number below a billion: with integers of 32 bits, which are twice as fast. */
function writeDigits(value: number, into: Uint8Array, start: number, end: number): void {
  let rest = value | 0;
  for (let at = end - 1; at >= start; at -= 1) {
    const tenth = (rest / 10) | 0;
    into[at] = ZERO + rest - tenth * 10;
    rest = tenth;
  }
}

export function writeBytes(bytes: Uint8Array, into: Uint8Array, start: number): number {
  const { length } = bytes;
  for (let index = 0; index < length; index += 1) into[start + index] = bytes[index] as number;
  return start + length;
}
