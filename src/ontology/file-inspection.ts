import { open } from "node:fs/promises";
import {
  describeWrongContent,
  type OntologyFileFormat,
  PACKING_BYTES,
  packingOf,
  type WrongContent,
} from "./format.ts";
import { ENDING_BYTES, endingProblem } from "./parsing/file-ending.ts";
import type { FileParser } from "./parsing/file-parser.ts";
import { FactCollector, type OntologyFacts } from "./parsing/ontology-facts.ts";
import {
  HEAD_BYTES,
  isErrorMessage,
  openParser,
  PARSER_OF_FORMAT,
  type ParserName,
  parsersFor,
  TWO_PASS_PARSERS,
  wrongContentOf,
} from "./parsing/parser-choice.ts";
import type { OnStatement } from "./parsing/statement.ts";
import { SyntaxProblem } from "./parsing/syntax-problem.ts";
import { encodingOf, TextDecoding } from "./parsing/text-decoding.ts";
import { inspectTaxonomyPackage, isTaxonomyPackage } from "./taxonomy-package.ts";
import { type FileVersion, labelOf } from "./version-label.ts";

/**
 * How a file is checked. `full`: a parser reads all of it. `end`: a parser reads the beginning, and the last characters
 * are checked. `none`: a parser reads the beginning.
 */
export type CheckDepth = "full" | "end" | "none";

/** The checks that a file has passed, as written to its manifest. */
export interface FileChecks {
  readonly depth: CheckDepth;
  /** How many statements the parser found, and what they are called: triples, stanzas, axioms, nodes or concepts. */
  readonly statements?: number | undefined;
  readonly of?: string | undefined;
  /** Why there are no statements and no facts, although the file is valid. */
  readonly note?: string | undefined;
}

export type Inspection =
  | {
      readonly kind: "valid";
      readonly format: OntologyFileFormat;
      readonly version: FileVersion | undefined;
      readonly checks: FileChecks;
      /** Null unless the whole file was parsed, and with `checks.note`. */
      readonly facts: OntologyFacts | null;
    }
  /** Not an ontology. Fetching it again would not help. */
  | { readonly kind: "wrong-content"; readonly content: WrongContent; readonly problem: string }
  /** An ontology that is incomplete or damaged. Fetching it again may help. */
  | { readonly kind: "broken"; readonly format: OntologyFileFormat | undefined; readonly problem: string };

export interface InspectionOptions {
  /** See `claimedFormat`. */
  readonly claim?: OntologyFileFormat | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The format that an earlier inspection with the depth `full` has found: only its parser reads the file. */
  readonly storedFormat?: OntologyFileFormat | undefined;
  /**
   * Receives the statements of the parser that accepts the file. If several parsers could read the file, or if it may be
   * OBO, the accepting parser reads it a second time for this. Otherwise the statements before a syntax error are passed
   * on too.
   */
  readonly onStatement?: OnStatement | undefined;
  /** Awaited after each chunk, so that a receiver of statements can write what it has. */
  readonly onChunk?: (() => Promise<void>) | undefined;
  /** Base of relative IRIs. @default "urn:base:" */
  readonly base?: string | undefined;
}

/** A chunk is parsed synchronously, so its size limits how long the event loop is blocked. */
const CHUNK_BYTES = 65_536;
const DEFAULT_BASE = "urn:base:";
/** How much of a file the depths `end` and `none` parse. A file can begin with a long comment, so one chunk is too little. */
const BEGINNING_BYTES = 1_048_576;

interface Attempt {
  readonly parser: FileParser;
  readonly facts: FactCollector;
  readonly problem: string | undefined;
  /** Whether the syntax is valid, but no statement was found. */
  readonly isEmpty: boolean;
}

/** Checks an unpacked file as deeply as `depth` says. Throws only for disk errors, aborts and errors of the callbacks. */
export async function inspectFile(
  path: string,
  depth: CheckDepth,
  options: InspectionOptions = {},
): Promise<Inspection> {
  const head = await readRange(path, 0, HEAD_BYTES);
  const packing = packingOf(head);
  if (packing === "zip" && (await isTaxonomyPackage(path))) return inspectPackage(path, depth, options);
  if (packing !== undefined)
    return wrongContent("binary", "file is compressed more than twice; at most two layers are unpacked");
  const encoding = encodingOf(head);
  const text = Buffer.from(head)
    .toString(encoding === "utf-16le" ? "utf16le" : "utf8")
    .replace(/^\ufeff/, "");
  if (text.trim() === "" && head.length < HEAD_BYTES) return wrongContent("empty");
  const isUtf8 = encoding === "utf-8" || encoding === "utf8";
  const stored = options.storedFormat && PARSER_OF_FORMAT[options.storedFormat];
  const guessed: readonly ParserName[] = isUtf8 ? parsersFor(text, options.claim) : ["xml"];
  const parsers = stored === undefined ? guessed : [stored];
  // Statements cannot be taken back, so several parsers are first tried without `onStatement`.
  const needsTrial = parsers.length > 1 || parsers.some(name => TWO_PASS_PARSERS.has(name));
  const isTrial = needsTrial && options.onStatement !== undefined;
  const trialOptions = isTrial ? { ...options, onStatement: undefined, onChunk: undefined } : options;
  const failed: Attempt[] = [];
  for (const name of parsers) {
    const trial = await tryParser(path, name, encoding, depth, trialOptions);
    if (trial.problem !== undefined) {
      failed.push(trial);
      continue;
    }
    // If the JSON-LD context is unknown, so is the meaning of the JSON object: it may be an error of the service.
    const isUnknown = trial.parser.note !== undefined && !/"@(?:id|graph)"\s?:/.test(text);
    if (isUnknown && isErrorMessage(text)) return wrongContent("json-error");
    const attempt = isTrial ? await tryParser(path, name, encoding, depth, options, trial.parser) : trial;
    if (attempt.problem === undefined) return finish(path, depth, encoding, attempt);
    failed.push(attempt);
  }
  const content = head.subarray(0, 16).includes(0) && isUtf8 ? "binary" : wrongContentOf(text);
  if (content !== undefined) return wrongContent(content);
  const [first] = failed;
  if (first?.isEmpty) return wrongContent("empty", first.problem);
  // Several parsers have failed. The most useful message is that of the parser that has read the most.
  const best = failed.reduce((a, b) => (progressOf(b) > progressOf(a) ? b : a));
  const problem = best.problem ?? "no parser accepts the file";
  const isKnownFormat =
    stored !== undefined ||
    best.parser.statements > 0 ||
    parsers[0] === "xml" ||
    parsers[0] === "json" ||
    !isFallback(parsers, options.claim);
  if (isKnownFormat) return broken(best.parser.format, problem);
  return wrongContent("text", `file is ${describeWrongContent("text")} (${problem})`);
}

async function inspectPackage(
  path: string,
  depth: CheckDepth,
  { signal, onStatement, onChunk }: InspectionOptions,
): Promise<Inspection> {
  const isFull = depth === "full";
  const found = await inspectTaxonomyPackage(path, { isFull, signal, onStatement, onChunk });
  if (typeof found === "string") return broken("xbrl-package", found);
  const { version: raw, facts = null, concepts } = found;
  const version = raw === undefined ? undefined : { raw, label: labelOf(raw) };
  const checks: FileChecks = isFull ? { depth, statements: concepts, of: "concepts" } : { depth };
  return { kind: "valid", format: "xbrl-package", version, checks, facts };
}

function progressOf({ parser }: Attempt): number {
  return parser.statements + (parser.format === undefined ? 0 : 0.5);
}

/** Whether the TriG parser, which also reads Turtle, was tried first without a claim: mostly nothing suggested a format. */
function isFallback([first]: readonly ParserName[], claim: OntologyFileFormat | undefined): boolean {
  return first === "trig" && claim === undefined;
}

/** The result for a file that a parser has accepted. */
async function finish(
  path: string,
  depth: CheckDepth,
  encoding: string,
  { parser, facts }: Attempt,
): Promise<Inspection> {
  const { format = "rdf-xml", statements, statementUnit, note } = parser;
  if (depth === "end") {
    const tail = new TextDecoder(encoding).decode(await readRange(path, -ENDING_BYTES, ENDING_BYTES));
    const problem = endingProblem(format, tail);
    if (problem !== undefined) return broken(format, problem);
  }
  const found = facts.facts();
  const { ontology_iri, version_iri, version_info, date } = found;
  // Some files have one version IRI for all releases: that of the ontology.
  const raw = (version_iri === ontology_iri ? null : version_iri) ?? version_info ?? date;
  const version = raw === null ? undefined : { raw, label: labelOf(raw) };
  if (depth !== "full") return { kind: "valid", format, version, checks: { depth }, facts: null };
  if (note !== undefined) return { kind: "valid", format, version, checks: { depth, note }, facts: null };
  return { kind: "valid", format, version, checks: { depth, statements, of: statementUnit }, facts: found };
}

async function tryParser(
  path: string,
  name: ParserName,
  encoding: string,
  depth: CheckDepth,
  { signal, onStatement, onChunk, base = DEFAULT_BASE }: InspectionOptions,
  earlier?: FileParser,
): Promise<Attempt> {
  const facts = new FactCollector();
  const { collect } = facts;
  const sink: OnStatement =
    onStatement === undefined
      ? collect
      : (subject, predicate, object, kind, language, datatype) => {
          collect(subject, predicate, object, kind, language, datatype);
          onStatement(subject, predicate, object, kind, language, datatype);
        };
  const maxBytes = depth === "full" ? Number.POSITIVE_INFINITY : BEGINNING_BYTES;
  const parser = await openParser(name, sink, base, earlier);
  const file = await open(path);
  try {
    const decoding = new TextDecoding(encoding);
    // One buffer for all chunks. With a new one for each, 100 MB accumulate between two garbage collections.
    const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    for (let at = 0; at < maxBytes; ) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, at);
      if (bytesRead === 0) break;
      at += bytesRead;
      signal?.throwIfAborted();
      parser.write(decoding.decode(buffer.subarray(0, bytesRead)));
      if (onChunk !== undefined) await onChunk();
      // A file that ends here is parsed completely, which costs no more.
      const isLonger = bytesRead === CHUNK_BYTES;
      if (depth !== "full" && isLonger && parser.format !== undefined)
        return { parser, facts, problem: undefined, isEmpty: false };
    }
    parser.write(decoding.end());
    parser.end();
    const isEmpty = parser.statements === 0 && parser.note === undefined;
    return { parser, facts, problem: isEmpty ? `file contains no ${parser.statementUnit}` : undefined, isEmpty };
  } catch (error) {
    signal?.throwIfAborted();
    // A file can be made to exhaust the stack or the length of a string. Only this file must fail, not the whole pull.
    if (!(error instanceof SyntaxProblem || error instanceof RangeError)) throw error;
    return { parser, facts, problem: error.message.replace(/\s+/g, " ").slice(0, 300), isEmpty: false };
  } finally {
    await file.close();
  }
}

function wrongContent(content: WrongContent, problem = `file is ${describeWrongContent(content)}`): Inspection {
  return { kind: "wrong-content", content, problem };
}

function broken(format: OntologyFileFormat | undefined, problem: string): Inspection {
  return { kind: "broken", format, problem: format === undefined ? problem : `invalid ${format}: ${problem}` };
}

/** @param from negative to count from the end. */
async function readRange(path: string, from: number, bytes: number): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const start = from >= 0 ? from : Math.max(0, (await file.stat()).size + from);
    const buffer = Buffer.alloc(bytes);
    let filled = 0;
    while (filled < bytes) {
      const { bytesRead } = await file.read(buffer, filled, bytes - filled, start + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  } finally {
    await file.close();
  }
}

/** The compression of a file; undefined if it has none. */
export async function packingOfFile(path: string): Promise<ReturnType<typeof packingOf>> {
  return packingOf(await readRange(path, 0, PACKING_BYTES));
}
