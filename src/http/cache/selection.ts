import { varyKeyOf } from "../../core/cache/vary.ts";
import { isCredentialName } from "../../core/text/credentials.ts";
import type { CallOptions } from "../call-options.ts";
import { joinedHeader } from "../headers.ts";
import type { CallerIdentity } from "../stages/caller-identity.ts";
import type { OutgoingRequest, SentFields } from "../stages/stage.ts";

/** Names of facts that select a variant and are not headers. No header can have these names. */
const PARTITION = "(partition)";
const IDENTITY = "(identity)";

/** The facts of a request that select a stored variant of its URL, as the server sees them: with its identification. */
export class Selection {
  /**
   * The names that keep responses apart, also when the server sends no `Vary` (law L13): headers with credentials, `host`
   * if it names another host than the URL, `PARTITION` for a call with a partition, `IDENTITY` for a URL to which
   * identification adds parameters.
   */
  readonly separatingNames: readonly string[];
  readonly #request: OutgoingRequest;
  readonly #sent: SentFields;

  constructor(request: OutgoingRequest, identity: CallerIdentity) {
    this.#request = request;
    this.#sent = identity.apply(request);
    this.separatingNames = this.#separatingNames(identity.secretHeaders(request));
  }

  /** One text for all requests that select the same variant by these names. */
  keyOf(names: readonly string[]): string {
    return varyKeyOf(names, name => {
      // As JSON, the text is a quoted string, which is compared exactly.
      if (name === PARTITION) return this.#request.call.partition && JSON.stringify(this.#request.call.partition);
      if (name === IDENTITY) return this.#hasIdentityQuery ? JSON.stringify(this.#sent.path) : undefined;
      return joinedHeader(this.#sent.headers, name);
    });
  }

  get #hasIdentityQuery(): boolean {
    return this.#sent.path !== this.#request.path;
  }

  #separatingNames(secretHeaders: readonly string[]): readonly string[] {
    let names: string[] | undefined = this.#request.call.partition === undefined ? undefined : [PARTITION];
    if (this.#hasIdentityQuery) names = [...(names ?? NO_NAMES), IDENTITY];
    const { headers } = this.#sent;
    for (let at = 0; at < headers.length; at += 2) {
      const name = headers[at] as string;
      if (ORDINARY_NAMES.has(name)) continue;
      const isSeparating =
        name === "host"
          ? this.#isOtherHost(headers[at + 1] as string)
          : isCredentialName(name) || secretHeaders.includes(name);
      if (!isSeparating) continue;
      names ??= [];
      names.push(name);
    }
    return names ?? NO_NAMES;
  }

  #isOtherHost(host: string): boolean {
    const { origin } = this.#request;
    return host.toLowerCase() !== origin.slice(origin.indexOf("//") + 2);
  }
}

const NO_NAMES: readonly string[] = Object.freeze([]);
/** Headers of most requests, whose names are skipped quickly, because this runs for every request. */
const ORDINARY_NAMES: ReadonlySet<string> = new Set(
  "connection accept accept-language accept-encoding sec-fetch-mode user-agent".split(" "),
);

/**
 * Requests with the same key may be sent as one. Their URLs, headers, roles and timeouts are equal, and so are the call
 * options that decide which limits and circuits apply, and whether the response is retried, stored or replaced by a stale
 * one. URL and headers are compared with their identification: after a reload, a request with another API key must not
 * join. The method is not in the key, because only GETs are sent as one.
 */
export function coalescingKey(request: OutgoingRequest, identity: CallerIdentity): string {
  const { role, origin, call } = request;
  const { path, headers } = identity.apply(request);
  const key = `${role} ${origin}${path}\n${headers.join("\n")}`;
  const { headersTimeout, bodyTimeout } = request.options;
  const timeouts = headersTimeout == null && bodyTimeout == null ? "" : `\n${headersTimeout} ${bodyTimeout}`;
  const options = KEY_OPTIONS.filter(name => call[name] !== undefined);
  if (options.length === 0) return `${key}${timeouts}`;
  return `${key}${timeouts}\n\n${JSON.stringify(options.map(name => [name, String(call[name])]))}`;
}

/** The options in the key. `outcome`, a function, and the time limits are compared when a request joins another one. */
const KEY_OPTIONS = [
  "partition",
  "resolver",
  "service",
  "cacheLifetimeMs",
  "staleOnDisconnect",
  "idempotent",
] as const satisfies readonly (keyof CallOptions)[];
