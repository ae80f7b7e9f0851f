/**
 * curl's `--connect-to`: connects to another server for a host, for staging servers, mirrors and tests. Only the
 * connection changes; the URL, the Host header, the TLS name and the policy stay those of the requested host.
 */

import { canonicalHost } from "../../core/text/host.ts";
import { quote } from "../../core/text/quote.ts";

/** The server to connect to. An IPv6 address has no brackets, as `net.connect` expects. */
export interface DialTarget {
  readonly hostname: string;
  readonly port: number;
  /** True when the entry names the address: only then may it be private. False when the entry changes only the port. */
  readonly isNamed: boolean;
}

/** An undefined `host` or `port` matches any; an undefined `toHostname` or `toPort` keeps the requested one. */
interface Mapping {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly toHostname: string | undefined;
  readonly toPort: number | undefined;
}

const FORM = /^(\[[^[\]]*\]|[^:[\]]*):([^:]*):(\[[^[\]]*\]|[^:[\]]*):([^:]*)$/;

export class ConnectTo {
  readonly #mappings: readonly Mapping[];

  /**
   * @param entries `host:port:address:port`, IPv6 in brackets. An empty host or port matches any; an empty address or
   * second port keeps the requested one.
   * @throws RangeError that names the entry.
   */
  constructor(entries: readonly string[]) {
    this.#mappings = entries.map(parseMapping);
  }

  /** The target of the first entry that matches; undefined when none does. */
  target(hostname: string, port: number): DialTarget | undefined {
    if (this.#mappings.length === 0) return undefined;
    const host = canonicalHost(hostname);
    const found = this.#mappings.find(mapping => (mapping.host ?? host) === host && (mapping.port ?? port) === port);
    if (found === undefined) return undefined;
    return {
      hostname: found.toHostname ?? hostname,
      port: found.toPort ?? port,
      isNamed: found.toHostname !== undefined,
    };
  }
}

function parseMapping(text: string): Mapping {
  const [match, host = "", port = "", toHost = "", toPort = ""] = FORM.exec(text) ?? [];
  if (match === undefined) throw notAMapping(text, "it does not have four parts");
  return {
    host: parseHost(text, host),
    port: parsePort(text, port),
    toHostname: parseHost(text, toHost)?.replace(/^\[|\]$/g, ""),
    toPort: parsePort(text, toPort),
  };
}

function parseHost(text: string, part: string): string | undefined {
  if (part === "") return undefined;
  try {
    return canonicalHost(part);
  } catch (cause) {
    throw notAMapping(text, `${quote(part)} is not a host`, { cause });
  }
}

function parsePort(text: string, part: string): number | undefined {
  if (part === "") return undefined;
  const port = /^\d{1,5}$/.test(part) ? Number(part) : 0;
  if (port < 1 || port > 65_535) throw notAMapping(text, `${quote(part)} is not a port from 1 to 65535`);
  return port;
}

/** A text with `@` may contain a password. Its parts are not quoted, so the reason is left out. */
function notAMapping(text: string, why: string, options?: ErrorOptions): RangeError {
  const isSafe = !text.includes("@");
  return new RangeError(
    `connectTo: ${isSafe ? JSON.stringify(text) : quote(text)} is not a mapping${isSafe ? `: ${why}` : ""}; expected host:port:address:port, each of which may ` +
      `be empty, such as "example.org:443:127.0.0.1:8443" or "::[::1]:8443"`,
    isSafe ? options : undefined,
  );
}
