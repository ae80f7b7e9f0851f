import { open } from "node:fs/promises";
import { ENDING_BYTES, endingProblem } from "./checks/file-ending.ts";
import { parseFile } from "./checks/file-parser.ts";
import { type FileVersion, VERSION_BYTES, versionOf } from "./checks/file-version.ts";
import {
  DETECT_BYTES,
  type DetectedContent,
  describeWrongContent,
  detect,
  type OntologyFileFormat,
  type WrongContent,
} from "./format.ts";

/** How closely a file is looked at: to its end with a parser, at its two ends, or at its beginning only. */
export type CheckDepth = "full" | "end" | "none";

/** What was looked at, for manifests. */
export interface FileChecks {
  readonly depth: CheckDepth;
  readonly statements?: number | undefined;
  readonly of?: string | undefined;
}

export type Inspection =
  | {
      readonly kind: "valid";
      readonly format: OntologyFileFormat;
      readonly version: FileVersion | undefined;
      readonly checks: FileChecks;
    }
  /** It cannot be an ontology, however often it is fetched. */
  | { readonly kind: "trap"; readonly trap: WrongContent; readonly problem: string }
  /** It begins well, and has been cut off or damaged. */
  | { readonly kind: "broken"; readonly format: OntologyFileFormat; readonly problem: string };

/** By the bytes at the beginning. */
export async function detectFile(path: string): Promise<DetectedContent> {
  const file = await open(path);
  try {
    return detect(await readRange(file, 0, DETECT_BYTES));
  } finally {
    await file.close();
  }
}

/** Judges an unpacked file: its format by its bytes, its version by its head, its end, and all of it by a parser. */
export async function inspectFile(path: string, depth: CheckDepth, signal?: AbortSignal): Promise<Inspection> {
  const file = await open(path);
  let head: Buffer;
  let tail: Buffer;
  try {
    const { size } = await file.stat();
    head = await readRange(file, 0, VERSION_BYTES);
    tail = await readRange(file, Math.max(0, size - ENDING_BYTES), ENDING_BYTES);
  } finally {
    await file.close();
  }
  const detected = detect(head);
  if (detected.kind === "packed") return { kind: "trap", trap: "binary", problem: "it is packed more than twice" };
  if (detected.kind === "trap") {
    return { kind: "trap", trap: detected.trap, problem: `it is ${describeWrongContent(detected.trap)}` };
  }
  const { format } = detected;
  const version = versionOf(format, head.toString("utf8"));
  if (depth === "none") return { kind: "valid", format, version, checks: { depth } };
  const problem = endingProblem(format, tail.toString("utf8"));
  if (problem !== undefined) return { kind: "broken", format, problem };
  if (depth === "end") return { kind: "valid", format, version, checks: { depth } };
  const parsed = await parseFile(path, format, signal);
  if (!parsed.isValid) return { kind: "broken", format, problem: parsed.problem };
  return { kind: "valid", format, version, checks: { depth, statements: parsed.statements, of: parsed.of } };
}

async function readRange(file: Awaited<ReturnType<typeof open>>, from: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  let filled = 0;
  while (filled < bytes) {
    const { bytesRead } = await file.read(buffer, filled, bytes - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
