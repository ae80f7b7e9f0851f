/** Requests and replies of the simulated services. A service is a pure function from one to the other. */

/** One request, as a service sees it. */
export interface SimulatedRequest {
  readonly method: string;
  readonly isTls: boolean;
  /** Lower case, without a port. */
  readonly host: string;
  /** As received, without the query: `/works/10.5555%2Fa`. */
  readonly path: string;
  /** The query as received, with its question mark; empty if there is none. */
  readonly search: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  /** How many GET requests for the same URL came before, for services that fail the first time. */
  readonly earlierRequests: number;
  readonly wallMs: number;
}

export interface SimulatedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | StreamedBody;
  /** After this many bytes of the body the connection breaks. @default never */
  readonly cutAtBytes?: number | undefined;
}

/** A body that is generated while it is sent and never held in memory as a whole. */
export interface StreamedBody {
  readonly length: number;
  from(start: number, end: number): Iterable<Uint8Array>;
}

export type SimulatedService = (request: SimulatedRequest) => SimulatedReply;

export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): SimulatedReply {
  return reply(JSON.stringify(value), "application/json", status, headers);
}

export function html(
  title: string,
  body: string,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): SimulatedReply {
  const page = `<!doctype html>\n<html lang="en">\n<head><title>${title}</title></head>\n<body>${body}</body>\n</html>\n`;
  return reply(page, "text/html; charset=utf-8", status, headers);
}

export function tooMany(title = "Too Many Requests"): SimulatedReply {
  return html(title, `<h1>${title}</h1>`, 429);
}

export function text(body: string, status = 200, headers: Readonly<Record<string, string>> = {}): SimulatedReply {
  return reply(body, "text/plain; charset=utf-8", status, headers);
}

export function xml(body: string, status = 200, headers: Readonly<Record<string, string>> = {}): SimulatedReply {
  return reply(`<?xml version="1.0" encoding="UTF-8"?>\n${body}`, "application/xml", status, headers);
}

export function redirect(
  location: string,
  status = 302,
  headers: Readonly<Record<string, string>> = {},
): SimulatedReply {
  return reply(`moved to ${location}\n`, "text/plain", status, { location, ...headers });
}

export function reply(
  body: string | Uint8Array,
  type: string,
  status: number,
  headers: Readonly<Record<string, string>>,
): SimulatedReply {
  return {
    status,
    headers: { "content-type": type, ...headers },
    body: typeof body === "string" ? Buffer.from(body) : body,
  };
}

/** Escapes text for elements and attributes of XML and HTML. */
export function escapeXml(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, character => names[character] ?? character);
}

/** The decoded path; undefined if its percent encoding is invalid. */
export function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
