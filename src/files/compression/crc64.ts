/** CRC-64 of xz (ECMA-182, lowest bit first), in two halves because bitwise operators have 32 bits. */
export class Crc64 {
  #high = 0xffffffff;
  #low = 0xffffffff;

  update(bytes: Uint8Array): void {
    let high = this.#high;
    let low = this.#low;
    for (const byte of bytes) {
      const at = ((low ^ byte) & 0xff) * 2;
      low = ((low >>> 8) | (high << 24)) ^ (TABLE[at + 1] ?? 0);
      high = (high >>> 8) ^ (TABLE[at] ?? 0);
    }
    this.#high = high >>> 0;
    this.#low = low >>> 0;
  }

  /** The checksum, lowest byte first. */
  digest(): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(~this.#low >>> 0, 0);
    bytes.writeUInt32LE(~this.#high >>> 0, 4);
    return bytes;
  }
}

/** For each byte: the upper half, the lower half. */
const TABLE = new Uint32Array(512);
for (let byte = 0; byte < 256; byte += 1) {
  let [high, low] = [0, byte];
  for (let bit = 0; bit < 8; bit += 1) {
    const isOdd = (low & 1) === 1;
    low = (low >>> 1) | (high << 31);
    high >>>= 1;
    if (isOdd) {
      high ^= 0xc96c5795;
      low ^= 0xd7870f42;
    }
  }
  TABLE[byte * 2] = high;
  TABLE[byte * 2 + 1] = low;
}
