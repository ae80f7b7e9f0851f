/**
 * Decides the target of a redirect and the headers that it gets. The hub, ontofetch and the harvester send the hops.
 */
import { isAscii, isUtf8 } from "node:buffer";
import { isCredentialName } from "../../core/text/credentials.ts";

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export interface RedirectingResponse {
  readonly status: number;
  /** The `Location` field. */
  readonly location: string | undefined;
}

export interface RedirectHop {
  readonly kind: "hop";
  /** Without fragment, and without user name and password, which a redirecting server must not choose. */
  readonly url: URL;
  readonly method: string;
  /** Whether the method has become GET, so that the request has no body any more. */
  readonly dropsBody: boolean;
  /** Whether a header of the request must not be sent to the next hop. The name is in lower case. */
  readonly dropsHeader: (name: string) => boolean;
}

export type RedirectDecision =
  | RedirectHop
  /** The response is not a redirect. */
  | { readonly kind: "none" }
  /** The redirect cannot be followed. */
  | { readonly kind: "invalid"; readonly message: string };

/** Whether a response is a redirect that fetch and `maxRedirections` follow. */
export function isRedirect({ status, location }: RedirectingResponse): boolean {
  return REDIRECT_STATUSES.has(status) && location !== undefined;
}

export function decideRedirect(
  { status, location }: RedirectingResponse,
  { url: from, method }: { readonly url: URL; readonly method: string },
): RedirectDecision {
  if (location === undefined || !isRedirect({ status, location })) return { kind: "none" };
  const url = URL.parse(asUtf8(location), from.href);
  if (url === null) return { kind: "invalid", message: `${from.host} redirects to an invalid URL` };
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return { kind: "invalid", message: `${from.host} redirects to a URL that is not http or https` };
  url.username = "";
  url.password = "";
  url.hash = "";
  const dropsBody = (status === 303 && method !== "HEAD") || (status < 303 && method === "POST");
  const isSameOrigin = url.origin === from.origin;
  return {
    kind: "hop",
    url,
    method: dropsBody ? "GET" : method,
    dropsBody,
    dropsHeader: name =>
      name === "host" || (dropsBody && name.startsWith("content-")) || (!isSameOrigin && isCredentialName(name)),
  };
}

/**
 * A path that is a complete URL is sent to a proxy. `//x` is a path here, not a host: `new URL("//x", origin)` would take x
 * as the host.
 */
export function requestUrl({ origin, path }: { readonly origin: string; readonly path: string }): URL {
  return new URL(path.startsWith("/") ? `${new URL(origin).origin}${path}` : path, origin);
}

/** undici reads header fields as Latin-1. Servers that do not escape their URLs write UTF-8, which fetch reads too. */
function asUtf8(location: string): string {
  const bytes = Buffer.from(location, "latin1");
  const isLatin1 = bytes.toString("latin1") === location;
  return isLatin1 && !isAscii(bytes) && isUtf8(bytes) ? bytes.toString("utf8") : location;
}

/**
 * Why a chain of redirects ends before `next`; undefined if it may go on. `visited` holds the requests of the chain so
 * far, the first one included. `limitName` is the option that sets `max`, if there is one.
 */
export function redirectChainProblem(
  visited: readonly string[],
  next: string,
  { host, max, limitName }: { readonly host: string; readonly max: number; readonly limitName?: string },
): string | undefined {
  if (visited.includes(next)) return `redirect loop: the URL at ${host} was already visited`;
  if (visited.length <= max) return undefined;
  return `more than ${max} redirects${limitName === undefined ? "" : ` (${limitName})`}; the last one leads to ${host}`;
}
