/**
 * A hash of sixteen hexadecimal digits, the same on every machine: two 32-bit hashes (FNV-1a, and one with another
 * start and multiplier), mixed at the end. Not cryptographic: a cryptographic hash would cost ten times as much for
 * each request. It has 64 bits, so only texts of up to about ten letters can be recovered, by trying all of them.
 */
export function textHash(text: string): string {
  let one = 0x811c9dc5;
  let two = 0x9e3779b9;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    two = Math.imul(two ^ unit, 0x85ebca6b);
  }
  return hex(mixed(one ^ (two >>> 15))) + hex(mixed(two ^ (one >>> 13)));
}

function mixed(value: number): number {
  const half = Math.imul(value ^ (value >>> 16), 0x7feb352d);
  const whole = Math.imul(half ^ (half >>> 15), 0x846ca68b);
  return (whole ^ (whole >>> 16)) >>> 0;
}

/** Every byte as two digits: `toString(16)` takes eight times as long for a number above 2^31. */
const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

function hex(value: number): string {
  return `${BYTES[value >>> 24]}${BYTES[(value >>> 16) & 255]}${BYTES[(value >>> 8) & 255]}${BYTES[value & 255]}`;
}
