/** The parts of DER (X.690) that a certificate needs. Each function returns a complete element. */

const TAGS = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8: 0x0c,
  sequence: 0x30,
  set: 0x31,
  utcTime: 0x17,
} as const;

export const TRUE = element(TAGS.boolean, Buffer.of(0xff));

function element(tag: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content]);
}

/** The tag `[number]` around an element or, if `isPrimitive`, instead of its tag. */
export function tagged(number: number, content: Uint8Array, isPrimitive = false): Buffer {
  return element((isPrimitive ? 0x80 : 0xa0) | number, content);
}

export function sequence(...items: readonly Uint8Array[]): Buffer {
  return element(TAGS.sequence, Buffer.concat(items));
}

export function set(...items: readonly Uint8Array[]): Buffer {
  return element(TAGS.set, Buffer.concat(items));
}

/** A positive integer from its big-endian bytes. A leading zero byte keeps it positive. */
export function integer(bytes: Uint8Array): Buffer {
  return element(TAGS.integer, (bytes[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

export function octetString(content: Uint8Array): Buffer {
  return element(TAGS.octetString, content);
}

export function bitString(content: Uint8Array, unusedBits = 0): Buffer {
  return element(TAGS.bitString, Buffer.concat([Buffer.of(unusedBits), content]));
}

export function utf8(text: string): Buffer {
  return element(TAGS.utf8, Buffer.from(text));
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(TAGS.objectId, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** In whole seconds. The year has two digits, which X.509 reads as 1950 to 2049. */
export function utcTime(wallMs: number): Buffer {
  const digits = new Date(wallMs).toISOString().replace(/\D/g, "");
  return element(TAGS.utcTime, Buffer.from(`${digits.slice(2, 14)}Z`));
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let left = length; left > 0; left = Math.floor(left / 256)) bytes.unshift(left % 256);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

function base128(value: number): readonly number[] {
  const bytes = [value & 0x7f];
  for (let left = value >>> 7; left > 0; left >>>= 7) bytes.unshift(0x80 | (left & 0x7f));
  return bytes;
}
