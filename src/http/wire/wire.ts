/**
 * The bottom of the hub: the connections themselves. Who may be dialled is decided here and nowhere above, because
 * only here is it known which address a name, a redirect or a mapping has led to.
 */
import { lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { type ConnectionOptions, checkServerIdentity } from "node:tls";
import { Agent, buildConnector } from "undici";
import { PrivateAddressError } from "../../errors.ts";
import { ConnectTo } from "./connect-to.ts";
import { isPrivateAddress } from "./private-addresses.ts";

export interface WireOptions {
  /** False refuses hosts of private networks with a PrivateAddressError. Required, so that nobody allows them unawares. */
  readonly allowPrivate: boolean;
  /** `host:port:address:port`, as for curl. A host named as the target may be private. @default none */
  readonly connectTo?: readonly string[] | undefined;
  /** Turns names into addresses. @default `dns.lookup` */
  readonly lookup?: LookupFunction | undefined;
  /** `ca`: whom to trust, instead of Node's list. */
  readonly tls?: { readonly ca?: string | Buffer } | undefined;
  /** From the request to the end of the headers; 0 waits for ever. @default 60_000 */
  readonly headersTimeoutMs?: number | undefined;
  /** Between two pieces of a body; 0 waits for ever. @default 120_000 */
  readonly bodyTimeoutMs?: number | undefined;
  /** From the lookup to the end of the TLS handshake; 0 waits for ever. @default 10_000 */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * No cap on connections: the gate caps what is in flight, and over HTTP/2 connections say nothing about it.
 * No cap on origins: the agent forgets one when its last connection is closed. An idle one is closed after four
 * seconds, or when the server's Keep-Alive says.
 * @throws RangeError for an entry of `connectTo` that is not a mapping.
 */
export function makeWire(options: WireOptions): Agent {
  const { headersTimeoutMs = 60_000, bodyTimeoutMs = 120_000 } = options;
  return new Agent({
    allowH2: true,
    pipelining: 1,
    headersTimeout: headersTimeoutMs,
    bodyTimeout: bodyTimeoutMs,
    // undici grants a server's Keep-Alive up to ten minutes: a harvest of thousands of hosts would run out of sockets.
    keepAliveMaxTimeout: 60_000,
    connect: sharingTimeouts(makeConnector(options)),
  });
}

type Connector = buildConnector.connector;
type Dial = Parameters<Connector>[0] & {
  /** Missing from undici's types: false when a caller of the agent, such as Node's own fetch, knows HTTP/1.1 only. */
  readonly allowH2?: boolean;
};

function makeConnector(options: WireOptions): Connector {
  const { allowPrivate, lookup = systemLookup, tls, connectTimeoutMs = 10_000 } = options;
  const connectTo = new ConnectTo(options.connectTo ?? []);
  const settings = { ...tls, timeout: connectTimeoutMs, lookup };
  const open = bothProtocols(settings);
  const guarded = allowPrivate ? open : refusingLiterals(bothProtocols({ ...settings, lookup: guardedLookup(lookup) }));

  return (dial: Dial, callback) => {
    const target = connectTo.target(dial.hostname, portOf(dial));
    if (target === undefined) {
      guarded(dial, callback);
      return;
    }
    const mapped = { ...dial, hostname: target.hostname, port: String(target.port) };
    if (!target.isNamed) guarded(mapped, callback);
    else if (hasTlsName(dial)) open(mapped, callback);
    else bothProtocols({ ...settings, ...identityOf(dial.hostname) })(mapped, callback);
  };
}

/**
 * Until undici knows whether an https origin speaks HTTP/2 it connects for one waiting request after the other, so that
 * fifty requests to a host that does not answer would time out one by one, for over eight minutes. The next attempt
 * begins inside the callback that reports the last: within it, they all hear of the same time-out.
 */
function sharingTimeouts(connector: Connector): Connector {
  const timedOut = new Map<string, Error>();
  return (dial, callback) => {
    const key = `${dial.protocol}//${dial.host ?? dial.hostname}:${dial.port}`;
    const settle: typeof callback = (...answer) => {
      const [error] = answer;
      if (error === null || (error as NodeJS.ErrnoException).code !== "UND_ERR_CONNECT_TIMEOUT") {
        callback(...answer);
        return;
      }
      const isFirst = !timedOut.has(key);
      timedOut.set(key, error);
      try {
        callback(error, null);
      } finally {
        if (isFirst) timedOut.delete(key);
      }
    };
    const known = timedOut.get(key);
    if (known === undefined) connector(dial, settle);
    else settle(known, null);
  };
}

/** HTTP/2 comes first in the offer, for servers that choose by the client's order. */
function bothProtocols(settings: buildConnector.BuildOptions): Connector {
  const h2 = buildConnector({ ...settings, allowH2: true, preferH2: true });
  const h1 = buildConnector({ ...settings, allowH2: false });
  return (dial: Dial, callback) => (dial.allowH2 === false ? h1 : h2)(dial, callback);
}

/** A literal address is dialled without a lookup, so it is looked at before. */
function refusingLiterals(connector: Connector): Connector {
  return (dial, callback) => {
    const { hostname } = dial;
    if (isIP(hostname) === 0 || !isPrivateAddress(hostname)) {
      connector(dial, callback);
      return;
    }
    // Later, as a socket would: undici is still busy dispatching the request that would fail.
    queueMicrotask(() => callback(new PrivateAddressError({ host: hostname, address: hostname }), null));
  };
}

/**
 * Judges the very addresses that will be dialled; a second resolution could get other answers (DNS rebinding).
 * It always asks for all of them, also where one is wanted, and one private address condemns the name: a public host
 * has no reason to list one, and which of them is dialled is a matter of luck.
 */
function guardedLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, answer, family) => {
      if (error) {
        callback(error, []);
        return;
      }
      // A lookup that does not know `all` answers with a single address.
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

/** True where the name of the certificate is settled, whichever address is dialled. */
function hasTlsName({ protocol, servername, hostname }: Dial): boolean {
  return protocol !== "https:" || Boolean(servername) || isIP(hostname) === 0;
}

/** An address has no servername, and Node would compare the certificate with the address dialled instead. */
function identityOf(hostname: string): Pick<ConnectionOptions, "checkServerIdentity"> {
  return { checkServerIdentity: (_dialled, certificate) => checkServerIdentity(hostname, certificate) };
}
