/**
 * Checks hostile files of 2 MB and prints the CPU time of each: `npm run hostile-files [name]`. Besides the catalogue it
 * checks random bytes, and every sample repeated, nested in itself, truncated and with random bytes replaced. Exits with
 * 1 if one takes 2 seconds or more.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { inspectFile } from "../src/ontology/file-inspection.ts";
import { HOSTILE_FILES } from "../test/ontology/hostile-files.ts";
import { SAMPLES } from "../test/ontology/sample-files.ts";

const BYTES = 2_000_000;
const LIMIT_S = 2;
const RANDOM_FILES = 40;
const [only] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "hostile-"));
const path = join(folder, "file");
let worst = { name: "", seconds: 0 };

try {
  for (const [name, make] of Object.entries(HOSTILE_FILES)) {
    if (only === undefined || only === name) await check(name, make(BYTES));
  }
  if (only === undefined) {
    for (const [index, content] of fc.sample(randomFile(), RANDOM_FILES).entries())
      await check(`random ${index}`, content);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
console.log(`slowest: ${worst.name}, ${worst.seconds.toFixed(2)} s of CPU; limit is ${LIMIT_S} s`);
process.exitCode = worst.seconds < LIMIT_S ? 0 : 1;

async function check(name: string, content: string | Uint8Array): Promise<void> {
  writeFileSync(path, content);
  const before = process.cpuUsage();
  const found = await inspectFile(path, "full");
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  const verdict = found.kind === "valid" ? found.format : found.problem;
  console.log(`${seconds.toFixed(2).padStart(6)} s  ${name.padEnd(40)} ${verdict.slice(0, 80)}`);
  if (seconds > worst.seconds) worst = { name, seconds };
}

/** A sample, or random bytes, made large by repetition, and damaged. */
function randomFile(): fc.Arbitrary<Uint8Array> {
  const letters = fc.string({ unit: "grapheme", minLength: 1, maxLength: 100 }).map(text => Buffer.from(text));
  const bytes = fc.oneof(letters, letters, fc.uint8Array({ minLength: 1, maxLength: 200 }));
  const sample = fc.constantFrom(...SAMPLES).map(([, text]) => Buffer.from(text));
  const part = fc.tuple(sample, fc.nat(1000), fc.nat(1000)).map(([text, from, length]) => {
    const start = from % text.length;
    return text.subarray(start, start + 1 + (length % text.length));
  });
  return fc
    .tuple(sample, part, fc.option(bytes), fc.array(fc.tuple(fc.nat(BYTES), bytes), { maxLength: 5 }))
    .map(([head, repeated, noise, damages]) => {
      const unit = noise === null ? repeated : Buffer.concat([repeated, noise]);
      const body = Buffer.concat([head, Buffer.alloc(BYTES - head.length, unit)]);
      for (const [at, damage] of damages) body.set(damage.subarray(0, BYTES - at), at);
      return body;
    });
}
