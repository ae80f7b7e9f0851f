import { lookup as systemLookup } from "node:dns";
import type { ClientRequest } from "node:http";
import type { LookupFunction } from "node:net";
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
      const host = deps.hostNames().of(target.origin);
      new NodeRequest(deps, request, { ...target, host, call, send, end }).begin();
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
 * Refuses private addresses. Names are not checked if the agent has a `lookup` of its own, which Node then uses instead of
 * this one, or if the request opens its own connection (`createConnection`).
 */
function refusePrivate(request: ClientRequest, options: NodeRequestOptions): void {
  const host = request.host.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0 && isPrivateAddress(host)) throw new PrivateAddressError({ host, address: host });
  options.lookup = guardedLookup((options.lookup ?? systemLookup) as LookupFunction);
}
