import { lookup as systemLookup } from "node:dns";
import type { Agent, ClientRequest } from "node:http";
import type { LookupFunction, Socket } from "node:net";
import { isIP } from "node:net";
import { ConfigError, HubClosedError, PrivateAddressError } from "../../errors.ts";
import type { CallOptions } from "../call-options.ts";
import type { HostNames } from "../host-names.ts";
import { isPrivateAddress } from "../wire/private-addresses.ts";
import { guardedLookup } from "../wire/wire.ts";
import type { NodeInterceptor } from "./node-hooks.ts";
import { NodeRequest, type NodeRequestDeps } from "./node-request.ts";
import { type NodeRequestOptions, nodeTarget } from "./node-target.ts";

export interface NodeClientDeps extends NodeRequestDeps {
  readonly hostNames: () => HostNames;
  readonly allowsPrivate: boolean;
  readonly isClosed: () => boolean;
}

/** Options that need a response from the hub itself or a second request. The streams of node:http allow neither. */
const UNSUPPORTED = [
  "offline",
  "staleOnDisconnect",
  "cacheLifetimeMs",
  "refusals",
  "maxRedirections",
  "idempotent",
] as const;

/** Makes the interceptor that sends requests of node:http through the hub. `callOf` is called for each request. */
export function nodeInterceptor(deps: NodeClientDeps, callOf: () => CallOptions): NodeInterceptor {
  return (request, options, send, end) => {
    try {
      const target = nodeTarget(request, options);
      if (target === undefined) {
        send();
        return;
      }
      // It was destroyed before, for example by its signal: nothing is sent, and it must not wait for a slot.
      if (request.destroyed) {
        end();
        return;
      }
      if (deps.isClosed()) throw new HubClosedError();
      const call = callOf();
      if (call.offline) throw offlineError();
      if (!deps.allowsPrivate) refusePrivate(request, options);
      const isChecked = !deps.allowsPrivate && isConnectedByNode(request);
      const onSocket = isChecked ? (socket: Socket) => refusePrivateSocket(request, socket) : undefined;
      const host = deps.hostNames().of(target.origin);
      new NodeRequest(deps, request, { ...target, host, call, onSocket, send, end }).begin();
    } catch (error) {
      end(error as Error);
    }
  };
}

/** Throws a ConfigError for call options that have no effect on requests of node:http. */
export function checkNodeCall(call: CallOptions, where: string): void {
  const given = UNSUPPORTED.filter(name => call[name] !== undefined);
  const message = "has no effect on node:http: its requests are not cached, answered by the hub or sent again";
  if (given.length > 0) throw new ConfigError(given.map(path => ({ where, path, message })));
}

function offlineError(): ConfigError {
  const message = "requests of node:http have no cache, so they cannot be served offline; use hub.fetch";
  return new ConfigError([{ where: "node:http", path: "offline", message }]);
}

/**
 * Refuses private addresses before a connection is opened. Node does not use this lookup if the agent has a `lookup` of
 * its own, or if the request or its agent opens the connection (`createConnection`).
 */
function refusePrivate(request: ClientRequest, options: NodeRequestOptions): void {
  const host = hostOf(request);
  if (isIP(host) !== 0 && isPrivateAddress(host)) throw new PrivateAddressError({ host, address: host });
  options.lookup = guardedLookup((options.lookup ?? systemLookup) as LookupFunction);
}

/**
 * Closes a connection to a private address before the request is written to it. A stream of the client that is no
 * connection has no address.
 */
function refusePrivateSocket(request: ClientRequest, socket: Socket): void {
  const check = () => {
    const { remoteAddress: address } = socket;
    if (address === undefined || !isPrivateAddress(address)) return;
    socket.destroy(new PrivateAddressError({ host: hostOf(request), address }));
  };
  if (socket.connecting) socket.prependOnceListener("connect", check);
  else check();
}

/**
 * False if the agent opens connections by code of its own, or by the proxy settings of Node. They may lead to a proxy,
 * which may have a private address.
 */
function isConnectedByNode({ agent }: ClientRequest & { readonly agent?: Agent | null }): boolean {
  if (!agent) return true;
  const { options } = agent as { readonly options?: { readonly proxyEnv?: unknown } };
  if (options?.proxyEnv !== undefined) return false;
  const [http, https] = [process.getBuiltinModule("node:http"), process.getBuiltinModule("node:https")];
  return [http.Agent, https.Agent].some(({ prototype }) =>
    CONNECTING.every(name => Reflect.get(agent, name) === Reflect.get(prototype, name)),
  );
}

/** The methods of an agent that open a connection. */
const CONNECTING = ["createConnection", "createSocket"] as const;

function hostOf({ host }: ClientRequest): string {
  return host.replace(/^\[|\]$/g, "");
}
