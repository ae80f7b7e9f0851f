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

/**
 * How a file is checked. `full`: beginning, end, and a parser over all of it. `end`: beginning and end. `none`:
 * beginning.
 */
export type CheckDepth = "full" | "end" | "none";

/** The checks that a file has passed, as written to its manifest. */
export interface FileChecks {
  readonly depth: CheckDepth;
  /** How many statements the parser found, and what they are called: triples, stanzas, axioms, elements, values. */
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
  /** Not an ontology. Fetching it again would not help. */
  | { readonly kind: "wrong-content"; readonly content: WrongContent; readonly problem: string }
  /** An ontology that is incomplete or damaged. Fetching it again may help. */
  | { readonly kind: "broken"; readonly format: OntologyFileFormat; readonly problem: string };

export async function detectFile(path: string): Promise<DetectedContent> {
  const file = await open(path);
  try {
    return detect(await readRange(file, 0, DETECT_BYTES));
  } finally {
    await file.close();
  }
}

/** Checks an unpacked file as deeply as `depth` says. Throws only for disk errors and aborts. */
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
  if (detected.kind === "packed")
    return { kind: "wrong-content", content: "binary", problem: "compressed more than twice" };
  if (detected.kind === "wrong-content") {
    return { ...detected, problem: `file is ${describeWrongContent(detected.content)}` };
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
