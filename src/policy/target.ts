import { urlHost } from "../core/text/host.ts";
import { withoutCredentials } from "../core/text/passwords.ts";
import type { SentKeys } from "./identity.ts";
import { type LoadedPolicy, namesHost } from "./load.ts";

/** A host, or a part of it, as the policy names it. */
export interface PolicyTarget {
  /** The canonical host; with its port only where the policy names it. */
  readonly host: string;
  /** Undefined for the whole host. */
  readonly path: string | undefined;
  /** What requests to the URL, or over https to the port, carry. Undefined for a host without a port. */
  readonly sentKeys: SentKeys | undefined;
}

/** Reads a host, with or without a path, or a complete URL. Throws a RangeError for any other text. */
export function policyTarget(policy: LoadedPolicy, target: string | URL): PolicyTarget {
  const url = typeof target === "string" ? parsed(target) : target;
  const { host, port: urlPort } = urlHost(url);
  const isUrl = typeof target !== "string" || hasScheme(target);
  const port = explicitPort(target) ?? urlPort;
  const hasPort = isUrl || explicitPort(target) !== undefined;
  const named = `${host}:${port}`;
  const name = hasPort && namesHost(policy, named) ? named : host;
  const { pathname: path, searchParams } = url;
  const { identities, ratelimits } = policy;
  const destination = { host, port, isHttps: !isUrl || url.protocol === "https:" };
  return {
    host: name,
    path: path === "/" ? undefined : path,
    sentKeys: hasPort
      ? identities.keysTo(destination, path, ratelimits.resolved.routing.find(name, path), searchParams)
      : undefined,
  };
}

/** The port of a bare host, which a URL would not show if it were the default port of its scheme. */
function explicitPort(target: string | URL): number | undefined {
  if (typeof target !== "string" || hasScheme(target)) return undefined;
  // An IPv6 address without brackets has several colons and no port.
  const digits = /^(?:[^/?#@]*@)?(?:\[[^\]]*\]|[^/?#:]*):(\d+)(?:[/?#]|$)/.exec(target)?.[1];
  return digits === undefined ? undefined : Number(digits);
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
