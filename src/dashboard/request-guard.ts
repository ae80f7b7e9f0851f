import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Which requests the server accepts. */
export interface GuardOptions {
  /** The token that a request must have; undefined if the application has checked the user. */
  readonly token: string | undefined;
  /** Names that requests may use for this server, lower case, without a port; undefined for every name. */
  readonly hosts: ReadonlySet<string> | undefined;
}

/** The parts of a request that decide whether it is served. */
export interface GuardedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  /** The token in the URL, if it has one. */
  readonly givenToken: string | undefined;
}

export interface Refused {
  readonly status: 403 | 405;
  readonly text: string;
}

export const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["127.0.0.1", "[::1]", "localhost"]);
/** The scripts of the page send this header with each action. A script of another site cannot. */
const ACTION_HEADER = "x-docstokg-action";

/**
 * Refuses requests under another host name (DNS rebinding), without the token, and those that another site makes a
 * browser send. Actions also need the header with the token of the page.
 */
export function refusalOf(request: GuardedRequest, options: GuardOptions, actionToken: string): Refused | undefined {
  const { method, headers, givenToken } = request;
  const { token, hosts } = options;
  if (hosts !== undefined && !hosts.has(hostNameOf(headers.host ?? "")))
    return refused(`only requests to ${[...hosts].join(", ")} are served`);
  if (method !== "GET" && method !== "HEAD" && method !== "POST")
    return { status: 405, text: "405: only GET, HEAD and POST are served\n" };
  if (token !== undefined && !isEqual(givenToken, token) && !isEqual(cookieOf(headers, cookieName(token)), token))
    return refused("open the address that the dashboard has printed: it contains the token");
  if (isFromAnotherSite(headers)) return refused("requests of other sites are not served");
  if (method !== "POST") return undefined;
  if (headers.origin === undefined || originHost(headers.origin) !== (headers.host ?? "").toLowerCase())
    return refused("actions are only accepted from the page itself");
  const action = headers[ACTION_HEADER];
  return isEqual(typeof action === "string" ? action : undefined, actionToken)
    ? undefined
    : refused("the action has no valid token: reload the page");
}

/** Cookies are shared by all ports of a host, so each dashboard has its own cookie name. */
export function cookieName(token: string): string {
  return `docstokg-${createHash("sha256").update(token).digest("hex").slice(0, 12)}`;
}

/** Old browsers do not send `Sec-Fetch-Site`; the cookie has SameSite=Strict for them. */
function isFromAnotherSite({ "sec-fetch-site": site, "sec-fetch-mode": mode }: IncomingHttpHeaders): boolean {
  // A link from another page opens the dashboard itself, and shows nothing to that page.
  if (mode === "navigate") return false;
  return site !== undefined && site !== "same-origin" && site !== "none";
}

function hostNameOf(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, "");
}

function originHost(origin: string): string | undefined {
  return URL.parse(origin)?.host.toLowerCase();
}

function cookieOf({ cookie = "" }: IncomingHttpHeaders, name: string): string | undefined {
  return cookie
    .split(";")
    .map(part => part.trim())
    .find(part => part.startsWith(`${name}=`))
    ?.slice(name.length + 1);
}

/** Takes the same time for every difference, so that the time reveals nothing about the token. */
function isEqual(given: string | undefined, expected: string): boolean {
  if (given === undefined) return false;
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
}

function refused(reason: string): Refused {
  return { status: 403, text: `403: ${reason}\n` };
}
