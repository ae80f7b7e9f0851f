/** Decodes the content codings of HTTP bodies (RFC 9110, 8.4.1). */
import { pipeline, Readable, type Transform } from "node:stream";
// createZstdDecompress is used through the object: an old Node lacks it, and a named import of it would fail before
// supported-runtime.ts can report the version.
import zlib, { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { fieldLine } from "../http/headers.ts";
import { zstdFrames } from "./compression/zstd-frames.ts";
import { dropBody } from "./drop-body.ts";

/** The value of `accept-encoding` for the codings that `decodedBody` reads. */
export const ACCEPTED_CODINGS = "gzip, br, deflate";

/**
 * The coding of a body; undefined if it is sent as it is. The hub renames the field of artifacts to
 * `x-content-encoding`.
 */
export function contentCoding(headers: HeaderFields): string | undefined {
  const field = fieldLine(headers["content-encoding"]) ?? fieldLine(headers["x-content-encoding"]) ?? "";
  const coding = field.trim().toLowerCase();
  return coding === "" || coding === "identity" ? undefined : coding;
}

/** Servers apply one or two codings. Without a limit, a long list in a header would create as many decoders. */
const CODINGS_MAX = 3;

/**
 * The body without its content codings; the same stream if it has none, too many or an unknown one. Errors of the
 * transfer and of a decoder are errors of the stream. Destroying the stream destroys the body.
 */
export function decodedBody(body: Readable, headers: HeaderFields): Readable {
  const codings = (contentCoding(headers) ?? "").split(",").map(coding => coding.trim());
  const decoders = codings.filter(coding => coding !== "identity").map(coding => DECODERS.get(coding));
  if (decoders.length > CODINGS_MAX || !decoders.every(decoder => decoder !== undefined)) return body;
  // The header lists the codings in the order in which the server applied them.
  return decoders.reduceRight(decodedOnce, body);
}

function decodedOnce(body: Readable, coding: Coding): Readable {
  const decoded = Readable.from(decode(body, coding), { objectMode: false });
  // Destroying `decoded` does not end a generator that waits for a chunk of the body.
  decoded.once("close", () => dropBody(body));
  return decoded;
}

interface Coding {
  /** The decoder for a body with these first bytes; undefined if the bytes are not encoded, whatever the header says. */
  decoderFor(first: Uint8Array): Transform | undefined;
  /** Splits the body into the pieces that the decoder needs. */
  readonly split?: ((chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>) | undefined;
}

const gunzip: Coding = { decoderFor: first => (first[0] === 0x1f ? createGunzip() : undefined) };
const DECODERS: ReadonlyMap<string, Coding> = new Map<string, Coding>([
  ["gzip", gunzip],
  ["x-gzip", gunzip],
  ["br", { decoderFor: () => createBrotliDecompress() }],
  // `deflate` means the zlib format; some servers send raw deflate instead.
  ["deflate", { decoderFor: first => (((first[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()) }],
  ["zstd", { decoderFor: () => zlib.createZstdDecompress(), split: zstdFrames }],
]);

async function* decode(body: Readable, { decoderFor, split }: Coding): AsyncGenerator<Buffer> {
  const chunks: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  async function* all(): AsyncGenerator<Buffer> {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  }
  const decoder = decoderFor(first.value);
  if (decoder === undefined) {
    yield* all();
    return;
  }
  // An error of the body destroys the decoder, and reading from the decoder then rejects.
  pipeline(split?.(all()) ?? all(), decoder, () => undefined);
  yield* decoder;
}
