/**
 * Parses a file to its end and counts its statements. No statement is kept, so memory use does not depend on the size.
 * Each parser is imported on first use, because most programs need none of them.
 */
import { createReadStream } from "node:fs";
import { type Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { SaxesTagNS } from "@rubensworks/saxes";
import type { OntologyFileFormat } from "../format.ts";
import { FunctionalSyntaxChecker } from "./functional-syntax-checker.ts";
import { OboSyntaxChecker } from "./obo-syntax-checker.ts";

export type ParseResult =
  /** `of` says what was counted: triples, stanzas, axioms, elements or values. */
  | { readonly isValid: true; readonly statements: number; readonly of: string }
  | { readonly isValid: false; readonly problem: string };

interface FormatCheck {
  readonly of: string;
  /** Resolves with the number of statements, or rejects with the error of the parser. */
  run(bytes: Readable, signal: AbortSignal | undefined): Promise<number>;
}

/** Some programs write lists as nested elements. A deeper file is made to occupy a parser for days. */
const DEPTH_MAX = 2000;

function checkDepth(depth: number, of: string): void {
  if (depth > DEPTH_MAX) throw new Error(`${of} nested deeper than ${DEPTH_MAX}`);
}

/** A chunk is parsed synchronously, so its size limits how long the event loop is blocked. */
const CHUNK_BYTES = 65_536;

export async function parseFile(path: string, format: OntologyFileFormat, signal?: AbortSignal): Promise<ParseResult> {
  const { of, run } = CHECKS[format];
  const bytes = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  try {
    const statements = await run(bytes, signal);
    if (statements > 0) return { isValid: true, statements, of };
    return { isValid: false, problem: `file contains no ${of}` };
  } catch (error) {
    signal?.throwIfAborted();
    // A disk error does not show that the file is damaged.
    if (error instanceof Error && "syscall" in error) throw error;
    const message = error instanceof Error ? error.message : String(error);
    return { isValid: false, problem: message.replace(/\s+/g, " ").slice(0, 300) };
  } finally {
    bytes.destroy();
  }
}

function quadParser(load: () => Promise<NodeJS.ReadWriteStream>): FormatCheck["run"] {
  return async (bytes, signal) => {
    let count = 0;
    const sink = new Writable({
      objectMode: true,
      highWaterMark: 1024,
      write: (_quad, _encoding, done) => {
        count += 1;
        done();
      },
    });
    await pipeline(bytes, await load(), sink, { signal });
    return count;
  };
}

/** Decodes the file as UTF-8 for parsers that take strings. */
function textParser<Parser>(
  load: () => Parser | Promise<Parser>,
  write: (parser: Parser, text: string) => void,
  end: (parser: Parser) => number,
): FormatCheck["run"] {
  return async (bytes, signal) => {
    const parser = await load();
    // Fatal, because a file that is not UTF-8 is damaged or mislabelled.
    const decoder = new TextDecoder("utf-8", { fatal: true });
    for await (const chunk of bytes) {
      signal?.throwIfAborted();
      write(parser, decoder.decode(chunk, { stream: true }));
    }
    write(parser, decoder.decode());
    return end(parser);
  };
}

const json: FormatCheck = {
  of: "values",
  run: async (bytes, signal) => {
    const { JSONParser, TokenType } = await import("@streamparser/json");
    // A path that matches nothing, so that the parser keeps no value.
    const parser = new JSONParser({ paths: ["$.nothing-of-this-name"], keepStack: false });
    let isComplete = false;
    let depth = 0;
    parser.onToken = ({ token }) => {
      if (token === TokenType.LEFT_BRACE || token === TokenType.LEFT_BRACKET) checkDepth(++depth, "values");
      else if (token === TokenType.RIGHT_BRACE || token === TokenType.RIGHT_BRACKET) depth -= 1;
    };
    parser.onValue = () => undefined;
    parser.onEnd = () => {
      isComplete = true;
    };
    let chunks = 0;
    for await (const chunk of bytes) {
      signal?.throwIfAborted();
      if (isComplete && chunk.toString("utf8").trim() === "") continue;
      parser.write(chunk);
      chunks += 1;
    }
    if (!isComplete) throw new Error("unexpected end of JSON");
    return chunks;
  },
};

const CHECKS: Readonly<Record<OntologyFileFormat, FormatCheck>> = {
  "rdf-xml": {
    of: "triples",
    // allowDuplicateRdfIds: otherwise the parser remembers every rdf:ID, and memory grows with the file.
    run: quadParser(async () => {
      const { RdfXmlParser } = await import("rdfxml-streaming-parser");
      class ShallowRdfXmlParser extends RdfXmlParser {
        protected override onTag(tag: SaxesTagNS): void {
          // A private field of the parser: the stack of open tags. A test fails if a new version renames it.
          const open: unknown = Reflect.get(this, "activeTagStack");
          if (Array.isArray(open)) checkDepth(open.length + 1, "elements");
          super.onTag(tag);
        }
      }
      return new ShallowRdfXmlParser({ allowDuplicateRdfIds: true, validateUri: false, baseIRI: "urn:base:" });
    }),
  },
  turtle: {
    of: "triples",
    run: quadParser(async () => {
      const { StreamParser } = await import("n3");
      return new StreamParser({ baseIRI: "urn:base:" });
    }),
  },
  "owl-xml": {
    of: "elements",
    run: textParser(
      async () => {
        const { SaxesParser } = await import("@rubensworks/saxes");
        const state = { parser: new SaxesParser({ xmlns: true }), elements: 0, depth: 0 };
        state.parser.on("opentag", () => {
          state.elements += 1;
          checkDepth(++state.depth, "elements");
        });
        state.parser.on("closetag", () => {
          state.depth -= 1;
        });
        state.parser.on("error", error => {
          throw error;
        });
        return state;
      },
      ({ parser }, text) => parser.write(text),
      state => {
        state.parser.close();
        return state.elements;
      },
    ),
  },
  obographs: json,
  "json-ld": json,
  obo: {
    of: "stanzas",
    run: textParser(
      () => new OboSyntaxChecker(),
      (lines, text) => lines.write(text),
      lines => {
        lines.end();
        return lines.stanzas;
      },
    ),
  },
  functional: {
    of: "axioms",
    run: textParser(
      () => new FunctionalSyntaxChecker(),
      (text, piece) => text.write(piece),
      text => {
        text.end();
        return text.axioms;
      },
    ),
  },
};
