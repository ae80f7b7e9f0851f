/**
 * Canonical host names. Policies, windows, circuits and stores use them as keys, so two spellings of the same server
 * must never become two budgets.
 */
import { quote } from "./quote.ts";

/** A canonical host and the port of the connection; the default port of the scheme if the URL has none. */
export interface UrlHost {
  readonly host: string;
  readonly port: number;
}

/**
 * Names that are canonical already, which is nearly all of them. They skip the URL parser, which costs about fifteen
 * times as much. The last label starts with a letter, because a numeric one makes the whole name an IPv4 address
 * (`0x7f.1`). Punycode is not decoded and checked; Node's parser does not do it either.
 */
const PLAIN_NAME = /^(?:[a-z0-9_-]{1,63}\.)*[a-z_][a-z0-9_-]{0,62}$/;

/** Four decimals without leading zeros, none above 255. */
const PLAIN_IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** The names that are accepted from the parser. Stricter than WHATWG, which accepts `*`, `!` and labels of any length. */
const CANONICAL_NAME = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;

/** Characters that the URL parser would trim, decode or treat as the end of the host; a host never contains them. */
const NEVER_IN_A_HOST = /[\s\p{Cc}@/\\?#%]/u;

/** An IPv4 address as the URL parser writes it in IPv6. */
const MAPPED_IPV4 = /^\[::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/;

const NAME_CHARS_MAX = 253;

/** A longer text cannot become a valid name, so it is not parsed. */
const INPUT_CHARS_MAX = 512;

/**
 * The canonical form of a host: lower case, punycode, no trailing dot, IPv6 compressed and in brackets. IPv4 has four
 * decimals, also if it is written in IPv6. A bare `8080` is an IPv4 address, as it is in a URL. A port is kept, even 80
 * and 443: a policy that names a port applies to that port only.
 * @throws RangeError that names the input.
 */
export function canonicalHost(text: string): string {
  if (typeof text !== "string") throw new RangeError(`a host must be a string, not ${JSON.stringify(text)}`);
  if (text.length <= NAME_CHARS_MAX && (PLAIN_NAME.test(text) || PLAIN_IPV4.test(text))) return text;
  if (text.length > INPUT_CHARS_MAX || NEVER_IN_A_HOST.test(text)) throw notAHost(text);

  const colon = portColon(text);
  const host = parsedHost(text.slice(0, colon));
  if (host === undefined) throw notAHost(text);
  if (colon === text.length) return host;

  const digits = text.slice(colon + 1);
  if (!/^[1-9]\d{0,4}$/.test(digits) || Number(digits) > 65_535) throw notAHost(text);
  return `${host}:${digits}`;
}

/** The address of a server, for messages and URLs: IPv6 in brackets, which it may have already. */
export function hostAndPort(host: string, port: number): string {
  return `${host.includes(":") && !host.startsWith("[") ? `[${host}]` : host}:${port}`;
}

/** Whether only this machine can reach a canonical host without a port. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * The canonical host of a URL, without its port, and the port of the connection.
 * The error message contains the scheme but not the URL, because its query may contain an API key.
 * @throws RangeError when the URL is not absolute, or neither http nor https.
 */
export function urlHost(url: URL | string): UrlHost {
  const parsed = typeof url === "string" ? URL.parse(url) : url;
  if (parsed === null) throw new RangeError("not an absolute URL; expected http://… or https://…");
  const { protocol, hostname, port } = parsed;
  if (protocol !== "http:" && protocol !== "https:") {
    throw new RangeError(`unsupported URL scheme ${quote(protocol)}; expected http: or https:`);
  }
  return { host: canonicalHost(hostname), port: port === "" ? (protocol === "http:" ? 80 : 443) : Number(port) };
}

/** Index of the colon before the port, or the length of the text. A bare IPv6 address has several colons and no port. */
function portColon(text: string): number {
  const colon = text.startsWith("[") ? text.indexOf("]") + 1 : text.indexOf(":");
  const isPort = colon > 0 && text[colon] === ":" && (text.startsWith("[") || text.indexOf(":", colon + 1) === -1);
  return isPort ? colon : text.length;
}

function parsedHost(text: string): string | undefined {
  const isBareIpv6 = text.includes(":") && !text.startsWith("[");
  const parsed = URL.parse(`http://${isBareIpv6 ? `[${text}]` : text}`);
  if (parsed === null) return undefined;
  if (parsed.hostname.startsWith("[")) return mappedIpv4(parsed.hostname);
  const name = parsed.hostname.endsWith(".") ? parsed.hostname.slice(0, -1) : parsed.hostname;
  return name.length <= NAME_CHARS_MAX && CANONICAL_NAME.test(name) ? name : undefined;
}

/** `[::ffff:7f00:1]` is 127.0.0.1 in another notation: a connection to it goes to the same server. */
function mappedIpv4(address: string): string {
  const [, high, low] = MAPPED_IPV4.exec(address) ?? [];
  if (high === undefined || low === undefined) return address;
  const bytes = [high, low].map(part => Number.parseInt(part, 16)).flatMap(part => [part >> 8, part & 0xff]);
  return bytes.join(".");
}

function notAHost(text: string): RangeError {
  return new RangeError(
    `${quote(text)} is not a host; expected a name such as "example.org", an address such as ` +
      `"192.0.2.1" or "[2001:db8::1]", with an optional port from 1 to 65535 ("example.org:8080")`,
  );
}
