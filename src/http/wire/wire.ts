/**
 * The connections of the hub. Private addresses are refused here and not in an outer stage, because the address that a
 * name, a redirect or a `connectTo` entry leads to is known only here.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { type ConnectionOptions, checkServerIdentity, createSecureContext } from "node:tls";
import { Agent, buildConnector } from "undici";
import { PrivateAddressError } from "../../errors.ts";
import { ConnectTo } from "./connect-to.ts";
import { markingSockets } from "./own-sockets.ts";
import { isPrivateAddress } from "./private-addresses.ts";
import { type ProxySettings, ProxyWire } from "./proxy-wire.ts";
import { type Connector, sharingTimeouts } from "./sharing-timeouts.ts";

export interface WireOptions {
  /**
   * False refuses private addresses with a PrivateAddressError. Required, so that no caller allows them by omission.
   */
  readonly allowPrivate: boolean;
  /** `host:port:address:port`, as for curl. An address that an entry names may be private. @default none */
  readonly connectTo?: readonly string[] | undefined;
  /** Resolves host names. @default `dns.lookup` */
  readonly lookup?: LookupFunction | undefined;
  /** `ca`: trusted certificates in PEM, instead of Node's own. */
  readonly tls?: { readonly ca?: string | Buffer } | undefined;
  /** From the request to the end of the response headers, in ms; 0 for no limit. @default 60_000 */
  readonly headersTimeoutMs?: number | undefined;
  /** Between two chunks of a body, in ms; 0 for no limit. @default 120_000 */
  readonly bodyTimeoutMs?: number | undefined;
  /** From the lookup to the end of the TLS handshake, in ms; 0 for no limit. @default 10_000 */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * The agent has no limit on connections: the gate limits the requests in flight, and with HTTP/2 they share
 * connections. It has no limit on origins: it drops an origin when its last connection is closed. An idle connection is
 * closed after four seconds, or at the time in the Keep-Alive field of the server.
 * @throws RangeError for an entry of `connectTo` that is not a mapping.
 */
export function makeWire(options: WireOptions): Agent {
  return new Agent(agentOptions(options));
}

/** As `makeWire`, through the proxies of an environment. */
export function makeProxyWire(options: WireOptions, settings: ProxySettings): ProxyWire {
  const { tls, connectTimeoutMs = 10_000 } = options;
  const connectTo = new ConnectTo(options.connectTo ?? []);
  const tunnelled = { ...agentOptions(options), connectTimeout: connectTimeoutMs, requestTls: { ...tls } };
  return new ProxyWire(settings, tunnelled, {
    direct: makeWire(options),
    connectTo,
    allowPrivate: options.allowPrivate,
  });
}

function agentOptions(options: WireOptions): Agent.Options {
  const { headersTimeoutMs = 60_000, bodyTimeoutMs = 120_000 } = options;
  return {
    allowH2: true,
    pipelining: 1,
    // undici accepts only whole numbers.
    headersTimeout: Math.ceil(headersTimeoutMs),
    bodyTimeout: Math.ceil(bodyTimeoutMs),
    // undici's own limit is ten minutes: a run over thousands of hosts would run out of sockets.
    keepAliveMaxTimeout: 60_000,
    connect: markingSockets(sharingTimeouts(makeConnector(options))),
  };
}

type Dial = Parameters<Connector>[0] & {
  /**
   * Missing in undici's types. False when the caller of the agent, such as Node's own fetch, supports only HTTP/1.1.
   */
  readonly allowH2?: boolean;
};

function makeConnector(options: WireOptions): Connector {
  const { allowPrivate, lookup = systemLookup, tls, connectTimeoutMs = 10_000 } = options;
  const connectTo = new ConnectTo(options.connectTo ?? []);
  // Parsing the certificates of `ca` takes up to 40 ms, so it is done once and not for each connection.
  const secureContext = tls?.ca === undefined ? {} : { secureContext: createSecureContext(tls) };
  const settings = { ...tls, ...secureContext, timeout: connectTimeoutMs, lookup };
  const unguarded = bothProtocols(settings);
  const guarded = allowPrivate
    ? unguarded
    : refusingLiterals(bothProtocols({ ...settings, lookup: guardedLookup(lookup) }));

  return (dial: Dial, callback) => {
    const target = connectTo.target(dial.hostname, portOf(dial));
    if (target === undefined) {
      guarded(dial, callback);
      return;
    }
    const mapped = { ...dial, hostname: target.hostname, port: String(target.port) };
    if (!target.isNamed) guarded(mapped, callback);
    else if (hasTlsName(dial)) unguarded(mapped, callback);
    else bothProtocols({ ...settings, ...identityOf(dial.hostname) })(mapped, callback);
  };
}

/** Offers HTTP/2 first, for servers that choose by the client's order. */
function bothProtocols(settings: buildConnector.BuildOptions): Connector {
  const h2 = buildConnector({ ...settings, allowH2: true, preferH2: true });
  const h1 = buildConnector({ ...settings, allowH2: false });
  return (dial: Dial, callback) => (dial.allowH2 === false ? h1 : h2)(dial, callback);
}

/** If the URL has an address instead of a name, there is no lookup, so the address is checked before connecting. */
function refusingLiterals(connector: Connector): Connector {
  return (dial, callback) => {
    const { hostname } = dial;
    if (isIP(hostname) === 0 || !isPrivateAddress(hostname)) {
      connector(dial, callback);
      return;
    }
    // Not synchronously: undici is still dispatching the request that fails.
    queueMicrotask(() => callback(new PrivateAddressError({ host: hostname, address: hostname }), null));
  };
}

/**
 * Checks the addresses that are connected to; a second lookup could return others (DNS rebinding). It always requests
 * all addresses, and one private address refuses the name: a public host has no reason to list one, and the address
 * that gets connected is not predictable.
 */
export function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer, family) => {
      if (error) {
        callback(error, []);
        return;
      }
      // A custom lookup may ignore `all` and return one address.
      const found = typeof answer === "string" ? [{ address: answer, family: family ?? isIP(answer) }] : answer;
      const refused = found.find(({ address }) => isPrivateAddress(address));
      const [first] = found;
      if (refused !== undefined) callback(new PrivateAddressError({ host: hostname, address: refused.address }), []);
      else if (options.all || first === undefined) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}

function portOf({ protocol, port }: Dial): number {
  if (port) return Number(port);
  return protocol === "https:" ? 443 : 80;
}

/** True when the name to check in the certificate does not depend on the address that is connected to. */
function hasTlsName({ protocol, servername, hostname }: Dial): boolean {
  return protocol !== "https:" || Boolean(servername) || isIP(hostname) === 0;
}

/** An address has no servername, and Node would check the certificate against the connected address instead. */
function identityOf(hostname: string): Pick<ConnectionOptions, "checkServerIdentity"> {
  return { checkServerIdentity: (_dialled, certificate) => checkServerIdentity(hostname, certificate) };
}
