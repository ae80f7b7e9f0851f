import { isIP } from "node:net";
import { type Agent, Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { hasAtAfterHost, MUST_BE_ENCODED } from "../../core/text/passwords.ts";
import { quote } from "../../core/text/quote.ts";
import { ConfigError, PrivateAddressError } from "../../errors.ts";
import type { Environment } from "../../policy/environment.ts";
import type { ConnectTo } from "./connect-to.ts";
import { markingSockets } from "./own-sockets.ts";
import { isPrivateAddress } from "./private-addresses.ts";
import { type Connector, sharingTimeouts } from "./sharing-timeouts.ts";
import { TunnelPool } from "./tunnel-pool.ts";

/** The proxies of an environment, as curl and Node read them. An empty text means none. */
export interface ProxySettings {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
}

/**
 * Undefined when the environment names no proxy. A variable in lower case wins, as in curl. HTTPS_PROXY is used for
 * `https:` URLs, HTTP_PROXY for all URLs if it is the only one.
 * @throws ConfigError for an address that is not a URL of a proxy.
 */
export function proxySettings(env: Environment): ProxySettings | undefined {
  const httpProxy = proxyIn(env, "http_proxy");
  const httpsProxy = proxyIn(env, "https_proxy");
  const noProxy = env["no_proxy"] || env["NO_PROXY"] || "";
  return httpProxy || httpsProxy ? { httpProxy, httpsProxy, noProxy } : undefined;
}

function proxyIn(env: Environment, name: string): string {
  const variable = env[name] ? name : name.toUpperCase();
  const text = env[variable] ?? "";
  if (text === "") return "";
  const address = text.includes("://") ? text : `http://${text}`;
  if (hasAtAfterHost(address)) throw new ConfigError([{ where: variable, path: "", message: MUST_BE_ENCODED }]);
  if (/^(?:https?|socks5?):$/.test(URL.parse(address)?.protocol ?? "")) return address;
  const message = `${quote(text)} is not the address of a proxy; expected http://host:port`;
  throw new ConfigError([{ where: variable, path: "", message }]);
}

/** undici opens the connections through a SOCKS proxy itself, so they cannot be marked as those of a hub. */
export function usesSocks({ httpProxy, httpsProxy }: ProxySettings): boolean {
  return [httpProxy, httpsProxy].some(address => /^socks/i.test(address));
}

export interface ProxyWireOptions extends Agent.Options {
  /** Bounds each step of a connection through a proxy, in ms; 0 for no limit. */
  readonly connectTimeout: number;
}

export interface ProxyWireDeps {
  /** Sends what does not go through a proxy. */
  readonly direct: Agent;
  readonly connectTo: ConnectTo;
  readonly allowPrivate: boolean;
}

/**
 * Sends through the proxies of the environment. A host that `connectTo` maps is connected directly. The proxy resolves
 * names, so a private address is refused only where the URL names it. Emits `connect` for each connection over which
 * requests are sent, as an Agent does.
 */
export class ProxyWire extends Dispatcher {
  readonly #deps: ProxyWireDeps;
  readonly #options: ProxyWireOptions;
  readonly #proxies: EnvHttpProxyAgent;

  constructor(settings: ProxySettings, agentOptions: ProxyWireOptions, deps: ProxyWireDeps) {
    super();
    this.#deps = deps;
    this.#options = agentOptions;
    const onConnect = (origin: URL, targets: readonly Dispatcher[]) => this.emit("connect", origin, targets);
    deps.direct.on("connect", onConnect);
    // undici's proxy agents do not pass on the events of their pools.
    const factory = (origin: string | URL, { connect, ...options }: ProxyPoolOptions) =>
      new Pool(origin, { ...options, connect: markingSockets(sharingTimeouts(connect)) }).on("connect", onConnect);
    const clientFactory = (origin: URL, { connect, ...options }: ProxyPoolOptions) =>
      new TunnelPool(origin, { ...options, connect: markingSockets(connect) }, Math.ceil(agentOptions.connectTimeout));
    this.#proxies = new EnvHttpProxyAgent({ ...agentOptions, ...settings, factory, clientFactory });
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { direct, connectTo, allowPrivate } = this.#deps;
    const url = new URL(String(options.origin));
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    if (connectTo.target(url.hostname, port) !== undefined) return direct.dispatch(options, handler);
    if (!allowPrivate && (isLocalName(host) || (isIP(host) !== 0 && isPrivateAddress(host)))) {
      const error = new PrivateAddressError({ host, address: host });
      queueMicrotask(() => handler.onResponseError?.(null as unknown as Dispatcher.DispatchController, error));
      return true;
    }
    // undici makes some of the pools for a proxy without the options of the agent.
    const { headersTimeout, bodyTimeout } = this.#options;
    const sent = {
      ...options,
      headersTimeout: options.headersTimeout ?? headersTimeout ?? null,
      bodyTimeout: options.bodyTimeout ?? bodyTimeout ?? null,
      headers: fieldsOf(options.headers ?? null),
    };
    return this.#proxies.dispatch(sent, handler);
  }

  override async close(): Promise<void> {
    await Promise.all([this.#deps.direct.close(), this.#proxies.close()]);
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#deps.direct.destroy(), this.#proxies.destroy()]);
  }
}

/** The options that undici passes to the factory of the pools of a proxy. */
interface ProxyPoolOptions extends Pool.Options {
  readonly connect: Connector;
}

type UndiciHeaders = NonNullable<Dispatcher.DispatchOptions["headers"]> | null;

/**
 * A list of names and values as an object: of the fields of one name in a list, undici's proxy agents keep only the last.
 * A field that is not repeated is a text, because undici accepts no list for Host, Connection and Content-Length.
 */
function fieldsOf(headers: UndiciHeaders): UndiciHeaders {
  if (!Array.isArray(headers)) return headers;
  const fields: Record<string, string | string[]> = Object.create(null);
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = String(headers[at]);
    const value = String(headers[at + 1]);
    const before = fields[name];
    fields[name] = before === undefined ? value : [before, value].flat();
  }
  return fields;
}

function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}
