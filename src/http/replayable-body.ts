type FetchBody = NonNullable<RequestInit["body"]>;

/** The body of an idempotent call of fetch. fetch itself turns every body into a stream that can be read only once. */
export interface ReplayableBody {
  /** The body to pass to fetch. A form is already encoded, because each encoding has another boundary. */
  readonly fetchBody: FetchBody;
  /** The bytes that each attempt sends. */
  readonly bytes: Uint8Array;
}

/** Reads a body that is in memory or in a file; undefined for a stream, which cannot be read twice. */
export async function replayableBody(body: FetchBody): Promise<ReplayableBody | undefined> {
  if (!isRereadable(body)) return undefined;
  // Copies the bytes at once: the caller may change its buffer after the call.
  const encoded = new Response(body);
  if (!(body instanceof FormData)) return { fetchBody: body, bytes: new Uint8Array(await encoded.arrayBuffer()) };
  const form = await encoded.blob();
  return { fetchBody: form, bytes: new Uint8Array(await form.arrayBuffer()) };
}

function isRereadable(body: FetchBody): boolean {
  if (typeof body === "string" || ArrayBuffer.isView(body)) return true;
  return [ArrayBuffer, Blob, FormData, URLSearchParams].some(type => body instanceof type);
}
