type FetchBody = NonNullable<RequestInit["body"]>;

/** The body of an idempotent call of fetch. fetch itself turns every body into a stream that can be read only once. */
export interface ReplayableBody {
  /** The media type that fetch would send; null for none. */
  readonly contentType: string | null;
  /** The bytes that each attempt sends. */
  readonly bytes: Promise<Uint8Array>;
}

/** Reads a body that is in memory or in a file; undefined for a stream, which cannot be read twice. */
export function replayableBody(body: FetchBody): ReplayableBody | undefined {
  if (!isRereadable(body)) return undefined;
  // Buffers are copied and forms encoded now: the caller may change them after the call.
  const encoded = new Response(body);
  const bytes = encoded.arrayBuffer().then(buffer => new Uint8Array(buffer));
  return { contentType: encoded.headers.get("content-type"), bytes };
}

function isRereadable(body: FetchBody): boolean {
  if (typeof body === "string" || ArrayBuffer.isView(body)) return true;
  return [ArrayBuffer, Blob, FormData, URLSearchParams].some(type => body instanceof type);
}
