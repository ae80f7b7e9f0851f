import { isIP } from "node:net";
import { type Agent, Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import { hasAtAfterHost, MUST_BE_ENCODED } from "../../core/text/passwords.ts";
import { quote } from "../../core/text/quote.ts";
import { ConfigError, PrivateAddressError } from "../../errors.ts";
import type { Environment } from "../../policy/environment.ts";
import type { ConnectTo } from "./connect-to.ts";
import { isPrivateAddress } from "./private-addresses.ts";

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
  readonly #proxies: EnvHttpProxyAgent;

  constructor(settings: ProxySettings, agentOptions: Agent.Options, deps: ProxyWireDeps) {
    super();
    this.#deps = deps;
    const onConnect = (origin: URL, targets: readonly Dispatcher[]) => this.emit("connect", origin, targets);
    deps.direct.on("connect", onConnect);
    // undici's proxy agents do not pass on the events of their pools.
    const factory = (origin: string | URL, options: object) => new Pool(origin, options).on("connect", onConnect);
    this.#proxies = new EnvHttpProxyAgent({ ...agentOptions, ...settings, factory });
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
    return this.#proxies.dispatch(options, handler);
  }

  override async close(): Promise<void> {
    await Promise.all([this.#deps.direct.close(), this.#proxies.close()]);
  }

  override async destroy(): Promise<void> {
    await Promise.all([this.#deps.direct.destroy(), this.#proxies.destroy()]);
  }
}

function isLocalName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}
