import { urlHost } from "../core/text/host.ts";
import { withoutCredentials } from "../core/text/passwords.ts";
import { type LoadedPolicy, namesHost } from "./load.ts";

/** A host, or a part of it, as the policy names it. */
export interface PolicyTarget {
  /** The canonical host; with its port only where the policy names it. */
  readonly host: string;
  /** Undefined for the whole host. */
  readonly path: string | undefined;
}

/** Reads a host, with or without a path, or a complete URL. Throws a RangeError for any other text. */
export function policyTarget(policy: LoadedPolicy, target: string | URL): PolicyTarget {
  const url = typeof target === "string" ? parsed(target) : target;
  const { host } = urlHost(url);
  const withPort = `${host}:${urlHost(url).port}`;
  return {
    host: namesHost(policy, withPort) && isPortGiven(target, url) ? withPort : host,
    path: url.pathname === "/" && url.search === "" ? undefined : url.pathname,
  };
}

/** A bare host without a port means all its ports; the port of a URL is known even if it is not written. */
function isPortGiven(target: string | URL, { port }: URL): boolean {
  return port !== "" || typeof target !== "string" || hasScheme(target);
}

function parsed(text: string): URL {
  // A port of 443 would be lost in a URL with https.
  const url = URL.parse(hasScheme(text) ? text : `http://${text}`);
  if (url !== null) return url;
  throw new RangeError(`${JSON.stringify(withoutCredentials(text))} is neither a host nor a URL`);
}

function hasScheme(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}
