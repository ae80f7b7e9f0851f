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
  const { host, port } = urlHost(url);
  const named = `${host}:${explicitPort(target) ?? port}`;
  const hasPort = typeof target !== "string" || hasScheme(target) || explicitPort(target) !== undefined;
  return {
    host: hasPort && namesHost(policy, named) ? named : host,
    path: url.pathname === "/" ? undefined : url.pathname,
  };
}

/** The port of a bare host, which a URL would not show if it were the default port of its scheme. */
function explicitPort(target: string | URL): string | undefined {
  if (typeof target !== "string" || hasScheme(target)) return undefined;
  // An IPv6 address without brackets has several colons and no port.
  return /^(?:[^/?#@]*@)?(?:\[[^\]]*\]|[^/?#:]*):(\d+)(?:[/?#]|$)/.exec(target)?.[1];
}

function parsed(text: string): URL {
  // The last form is for an IPv6 address without brackets.
  const url = hasScheme(text) ? URL.parse(text) : (URL.parse(`http://${text}`) ?? URL.parse(`http://[${text}]`));
  if (url !== null) return url;
  throw new RangeError(`${JSON.stringify(withoutCredentials(text))} is neither a host nor a URL`);
}

function hasScheme(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}
