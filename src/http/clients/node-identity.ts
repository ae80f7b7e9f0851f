import type { ClientRequest, IncomingMessage } from "node:http";
import { NO_KEYS, type SentKeys } from "../../policy/identity.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import type { NodeTarget } from "./node-target.ts";

type Target = Pick<NodeTarget, "origin" | "writtenPath">;

/**
 * Adds the identification that the host wants; to a request for a proxy, only the User-Agent. A request whose headers are
 * already rendered is sent as it is. Returns the keys that the request carries.
 */
export function addIdentity(request: ClientRequest, target: Target, identity: CallerIdentity): SentKeys {
  if (request.headersSent) return NO_KEYS;
  const given = request.getHeaders();
  const headers = Object.entries(given).flatMap(([name, value]) => [name, String(value)]);
  const { origin, writtenPath } = target;
  const identified = identity.apply({ origin, path: writtenPath, headers });
  if (identified.path !== writtenPath) request.path = identified.path;
  for (let at = 0; at + 1 < identified.headers.length; at += 2) {
    const [name = "", value = ""] = [identified.headers[at], identified.headers[at + 1]];
    if (headers[at] !== name || headers[at + 1] !== value) request.setHeader(name, value);
  }
  return identified.sentKeys;
}

/** Adds header fields (name, value, name, value) that the request does not have. */
export function addMissingHeaders(request: ClientRequest, fields: readonly string[]): void {
  if (request.headersSent) return;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = "", value = ""] = [fields[at], fields[at + 1]];
    if (!request.hasHeader(name)) request.setHeader(name, value);
  }
}

/**
 * Removes from the Location of a redirect what `addIdentity` has added with this identity, because the client itself
 * follows the redirect. Throws a RedirectError when the key is in a part of the Location from which it cannot be removed.
 */
export function scrubLocation(
  response: IncomingMessage,
  { origin, writtenPath }: Target,
  identity: CallerIdentity,
): void {
  const { statusCode: status = 0, statusMessage: statusText = "", headers, rawHeaders } = response;
  const head = { status, statusText, headers, rawHeaders };
  const clean = identity.scrub(head, { origin, path: writtenPath });
  if (clean === head) return;
  const location = String(clean.headers["location"]);
  response.headers.location = location;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.toLowerCase() === "location") rawHeaders[at + 1] = location;
  }
}
