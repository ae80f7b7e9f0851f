import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { ConfigError, DownloadError } from "../../src/errors.ts";
import type { Packing } from "../../src/ontology/format.ts";
import { formatLock, readLock } from "../../src/ontology/lockfile.ts";
import { unpack } from "../../src/ontology/unpack.ts";
import { type FuzzTarget, parsedLater } from "../target.ts";

const MAX_BYTES = 1_000_000;
const TEXT = "<http://a.example/x> <http://a.example/p> <http://a.example/y> .\n";
/** `TEXT` twice, packed. */
const SEEDS: Readonly<Record<Packing, Buffer>> = {
  gzip: gzipSync(TEXT),
  zstd: zstdCompressSync(TEXT),
  bzip2: Buffer.from(
    "QlpoOTFBWSZTWQKzrcYAABXZgAAQQAGAFSJGRGAgAFCmAAmgioTaJhPUqQNjAwMDkeDcyUJJPCBqPR2PBuOxkcEjUZGx0aH4u5IpwoSAFZ1uMA==",
    "base64",
  ),
  xz: Buffer.from(
    "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ACBACZdAB4aCphwHQSp5EtpREwi+vcA53Xg5JMgKvI+kODNQuU9EgUrhmAAAAAAbCzRLJlf+TwAAUKCAQAAAC37X/KxxGf7AgAAAAAEWVo=",
    "base64",
  ),
  zip: Buffer.from(
    "UEsDBBQAAAAIAAAAIQCKM+ZxJgAAAIIAAAAEAAAAYS5udLPJKCkpsNLXT9RLrUjMLchJ1a+wU7DBECzAJlhpp6DHhSlMogEAUEsBAhQDFAAAAAgAAAAhAIoz5nEmAAAAggAAAAQAAAAAAAAAAAAAAIABAAAAAGEubnRQSwUGAAAAAAEAAQAyAAAASAAAAAAA",
    "base64",
  ),
  tar: tarOf("a.nt", TEXT),
};

/** Emptied at exit; each worker has its own. */
const folder = mkdtempSync(join(tmpdir(), "docstokg-fuzz-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

export const archiveTargets: readonly FuzzTarget[] = [
  ...Object.entries(SEEDS).map(([packing, seed]) => ({
    name: `archive-${packing}`,
    seeds: [seed],
    words: ["PK\u0003\u0004", "PK\u0001\u0002", "../../a.owl", "/etc/a.owl", "a.nt\0", "ustar"],
    run: async (input: Buffer) => {
      const [from, to] = [join(folder, "packed"), join(folder, "unpacked")];
      writeFileSync(from, input);
      const result = await parsedLater(
        () => unpack(from, to, packing as Packing, { maxBytes: MAX_BYTES }),
        DownloadError,
      );
      if (result === undefined) return;
      assert(result.bytes <= MAX_BYTES, `${result.bytes} bytes`);
      assert.equal(statSync(to).size, result.bytes);
    },
  })),
  {
    name: "lockfile",
    seeds: ['{"lockfile_version":1,"ontologies":{}}'],
    words: ['"ontologies":', '"a":', "{", "}", '"sha256":', '"formats":', "[", "]", "null", '"__proto__":'],
    run: async input => {
      const file = join(folder, "ontofetch.lock");
      writeFileSync(file, input);
      const lock = await parsedLater(() => readLock(file), ConfigError);
      if (lock === undefined) return;
      writeFileSync(file, formatLock(lock));
      assert.equal(formatLock(await readLock(file)), formatLock(lock));
    },
  },
];

/** One file in the ustar format. */
function tarOf(name: string, text: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name);
  header.write("0000644\0", 100);
  header.write(`${Buffer.byteLength(text).toString(8).padStart(11, "0")}\0`, 124);
  header.write("        ", 148);
  header.write("0ustar\u000000", 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  const body = Buffer.alloc(512);
  body.write(text);
  return Buffer.concat([header, body, Buffer.alloc(1024)]);
}
