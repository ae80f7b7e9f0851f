/** The number of hash slots of every cluster. */
const SLOTS = 16_384;

/**
 * The hash slot of a key: CRC16 (XMODEM) of the text between the first `{` and the next `}`, or of the whole key if there
 * is no such text.
 */
export function slotOfKey(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(hashed)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc % SLOTS;
}
