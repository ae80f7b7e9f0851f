/** The address of a Redis store: one server, a set of sentinels, or the nodes of a cluster. */
import { hostAndPort } from "../../core/text/host.ts";
import { hasAtAfterHost, MUST_BE_ENCODED } from "../../core/text/passwords.ts";
import { StoreError } from "../../errors.ts";

export interface RedisHost {
  readonly host: string;
  readonly port: number;
}

export interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

/** Names of PEM files. Without `ca`, the certificate authorities of Node apply. */
export interface RedisTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface RedisAddress {
  readonly kind: "server" | "sentinel" | "cluster";
  /** The server, the sentinels, or some nodes of the cluster. At least one. */
  readonly hosts: readonly RedisHost[];
  /** The name under which the sentinels know the server; empty for the other kinds. */
  readonly primaryName: string;
  readonly credentials: RedisCredentials;
  readonly sentinelCredentials: RedisCredentials;
  readonly database: number;
  /** Undefined: no TLS. */
  readonly tls: RedisTls | undefined;
  readonly prefix: string | undefined;
  readonly timeoutMs: number | undefined;
}

const SCHEME = /^redis(s?)(\+sentinel)?:\/\//;
const EXAMPLES = "redis://user:password@host:6379/0 or redis+sentinel://host-a,host-b,host-c/name";
const MAX_TIMEOUT_MS = 600_000;
const DEFAULT_PORT = 6379;
const SENTINEL_PORT = 26_379;
const COMMON_PARAMETERS = ["prefix", "timeoutMs"];
const TLS_PARAMETERS = ["ca", "cert", "key"];
const SENTINEL_PARAMETERS = ["sentinelUser", "sentinelPassword"];

export function isRedisUrl(text: string): boolean {
  return SCHEME.test(text);
}

/** Throws a StoreError that says what is wrong, and quotes no part of the URL in which a password may be. */
export function parseRedisUrl(url: string): RedisAddress {
  const [scheme = "", secure, sentinel] = SCHEME.exec(url) ?? [];
  if (scheme === "") throw invalid(`expected ${EXAMPLES}`);
  if (hasAtAfterHost(url)) throw invalid(MUST_BE_ENCODED);
  const rest = url.slice(scheme.length);
  const end = rest.search(/[/?#]/);
  const authority = end < 0 ? rest : rest.slice(0, end);
  const { pathname, searchParams, hash } = new URL(`redis://h${end < 0 ? "" : rest.slice(end)}`);
  const at = authority.lastIndexOf("@");
  // Checked before the parameters: if the host is missing, the text after ? may be a part of the password.
  const hosts = hostsOf(authority.slice(at + 1), sentinel ? SENTINEL_PORT : DEFAULT_PORT);
  if (hash !== "") throw invalid("# has no meaning here");
  const { cluster, ...parameters } = parametersOf(searchParams, { isSecure: secure === "s", isSentinel: !!sentinel });
  const kind = sentinel ? "sentinel" : cluster === "true" ? "cluster" : "server";
  if (cluster !== undefined && cluster !== "true" && cluster !== "false")
    throw invalid(`expected cluster=true or cluster=false, not cluster=${cluster}`);
  if (kind === "server" && hosts.length > 1)
    throw invalid("several hosts need ?cluster=true (a cluster) or redis+sentinel:// (sentinels)");
  return {
    kind,
    hosts,
    ...pathOf(pathname, kind),
    credentials: credentialsOf(authority.slice(0, Math.max(0, at))),
    sentinelCredentials: {
      ...(parameters["sentinelUser"] && { username: parameters["sentinelUser"] }),
      ...(parameters["sentinelPassword"] && { password: parameters["sentinelPassword"] }),
    },
    tls: secure === "s" ? tlsOf(parameters) : undefined,
    prefix: parameters["prefix"] || undefined,
    timeoutMs: timeoutOf(parameters["timeoutMs"]),
  };
}

/** The address without user name, password and parameters, for messages: `10.0.0.1:6379/2`. */
export function addressText({ kind, hosts, primaryName, database }: RedisAddress): string {
  const names = hosts.map(({ host, port }) => hostAndPort(host, port)).join(",");
  const path = (kind === "sentinel" ? `/${primaryName}` : "") + (database > 0 ? `/${database}` : "");
  return names + path;
}

function parametersOf(
  searchParams: URLSearchParams,
  { isSecure, isSentinel }: { readonly isSecure: boolean; readonly isSentinel: boolean },
): Readonly<Record<string, string>> {
  const known = [
    ...COMMON_PARAMETERS,
    ...(isSentinel ? SENTINEL_PARAMETERS : ["cluster"]),
    ...(isSecure ? TLS_PARAMETERS : []),
  ];
  const parameters = Object.fromEntries(searchParams);
  for (const name of Object.keys(parameters)) {
    if (known.includes(name)) continue;
    const quoted = JSON.stringify(name);
    if (TLS_PARAMETERS.includes(name)) throw invalid(`the parameter ${quoted} needs TLS: rediss:// (with two s)`);
    if (SENTINEL_PARAMETERS.includes(name)) throw invalid(`the parameter ${quoted} needs redis+sentinel://`);
    if (name === "cluster") throw invalid(`the parameter ${quoted} has no effect with sentinels`);
    throw invalid(`unknown Redis parameter ${quoted}, expected ${known.map(each => JSON.stringify(each)).join(", ")}`);
  }
  return parameters;
}

/** No text is quoted: in `redis://user:password` the password is where the port should be. */
function hostsOf(text: string, defaultPort: number): readonly RedisHost[] {
  return text.split(",").map(part => {
    const [, bracketed, plain, digits] = /^(?:\[([0-9a-f:.%]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/i.exec(part) ?? [];
    const host = bracketed ?? plain;
    const port = digits === undefined ? defaultPort : Number(digits);
    if (host === undefined || port < 1 || port > 65_535)
      throw invalid(`a host is missing, or a port is not a number from 1 to 65535; expected ${EXAMPLES}`);
    return { host, port };
  });
}

function credentialsOf(text: string): RedisCredentials {
  const colon = text.indexOf(":");
  const username = decoded(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? "" : decoded(text.slice(colon + 1));
  return { ...(username && { username }), ...(password && { password }) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a % in a user name, a password or the name of the sentinels' server must be written as %25");
  }
}

function pathOf(pathname: string, kind: RedisAddress["kind"]): { primaryName: string; database: number } {
  const parts = pathname.split("/").slice(1);
  const name = kind === "sentinel" ? decoded(parts.shift() ?? "") : "";
  if (kind === "sentinel" && name === "")
    throw invalid("the name that the sentinels monitor is missing: redis+sentinel://host-a,host-b,host-c/name");
  const [database = "", ...others] = parts;
  if (others.length > 0 || !/^\d{0,5}$/.test(database))
    throw invalid(
      kind === "sentinel"
        ? "expected /name or /name/number, where the number is the database"
        : "the path must be the number of the database, such as /0",
    );
  if (kind === "cluster" && Number(database) > 0) throw invalid("a cluster has only database 0");
  return { primaryName: name, database: Number(database) };
}

function tlsOf({ ca, cert, key }: Readonly<Record<string, string>>): RedisTls {
  if ((cert === undefined) !== (key === undefined))
    throw invalid('a client certificate needs both parameters: "cert" and "key", the names of PEM files');
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function timeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const timeoutMs = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw invalid(`timeoutMs must be a whole number of milliseconds from 1 to ${MAX_TIMEOUT_MS}`);
  return timeoutMs;
}

function invalid(problem: string): StoreError {
  return new StoreError(`invalid Redis URL: ${problem}`);
}
