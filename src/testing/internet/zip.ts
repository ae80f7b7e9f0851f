import { crc32, deflateRawSync } from "node:zlib";

/** A zip file with one entry. Its date is fixed, so that the same content gives the same bytes. */
export function makeZip(name: string, content: Uint8Array): Buffer {
  const packed = deflateRawSync(content);
  const title = Buffer.from(name);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0); // version needed to unpack
  common.writeUInt16LE(8, 4); // deflated
  common.writeUInt16LE(0x21, 8); // the first of January 1980
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(title.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), common, title, packed]);
  const entry = Buffer.concat([Buffer.from("PK\x01\x02\x14\x00", "latin1"), common, Buffer.alloc(14), title]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(entry.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, entry, end]);
}
