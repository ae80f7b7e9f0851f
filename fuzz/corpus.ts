import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { FuzzTarget } from "./target.ts";

/** The inputs of a target in `corpus/<name>.json`: text, or base64 behind `base64:` if they are not UTF-8. */
export function readCorpus({ name, seeds }: FuzzTarget): readonly Buffer[] {
  const file = fileOf(name);
  const kept: readonly string[] = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  return [...seeds.map(toBuffer), ...kept.map(decoded)];
}

/** Writes the inputs, sorted, so that a run that finds nothing new changes no file. */
export function writeCorpus({ name, seeds }: FuzzTarget, inputs: readonly Buffer[]): void {
  const known = new Set(seeds.map(seed => encoded(toBuffer(seed))));
  const texts = [...new Set(inputs.map(encoded))].filter(text => !known.has(text)).sort();
  writeFileSync(fileOf(name), `${JSON.stringify(texts, undefined, 2)}\n`);
}

function toBuffer(seed: string | Buffer): Buffer {
  return typeof seed === "string" ? Buffer.from(seed) : seed;
}

const BASE64 = "base64:";

function encoded(input: Buffer): string {
  const text = input.toString("utf8");
  return Buffer.from(text).equals(input) && !text.startsWith(BASE64) ? text : `${BASE64}${input.toString("base64")}`;
}

function decoded(text: string): Buffer {
  return text.startsWith(BASE64) ? Buffer.from(text.slice(BASE64.length), "base64") : Buffer.from(text);
}

function fileOf(name: string): string {
  return resolve(import.meta.dirname, "corpus", `${name}.json`);
}
