import type { ClientRequest } from "node:http";
import type { Duplex } from "node:stream";
import { MethodHook } from "./method-hook.ts";
import type { NodeRequestOptions } from "./node-target.ts";

/**
 * Takes a request before it gets a socket. `send` lets node:http continue. `end` ends a request that has no socket: with
 * an error, or without one, as node:http does after `destroy`.
 */
export type NodeInterceptor = (
  request: ClientRequest,
  options: NodeRequestOptions,
  send: () => void,
  end: (error?: Error) => void,
) => void;

type AddRequest = (this: unknown, request: ClientRequest, options: NodeRequestOptions, ...rest: unknown[]) => void;
type OnSocket = (this: ClientRequest, socket: Duplex | null, error?: Error) => void;

// An import declaration would read every export, and node:http then loads the WebSocket of Node, which takes 40 ms.
const http = process.getBuiltinModule("node:http");
const agentPrototype = http.Agent.prototype as unknown as { addRequest: AddRequest };
const requestPrototype = http.ClientRequest.prototype as unknown as { onSocket: OnSocket };

/** In the order of installation; the last one takes the requests. */
const interceptors: NodeInterceptor[] = [];
const taken = new WeakSet<ClientRequest>();

/** Every agent inherits this method, those of node:https and of most libraries too. */
const addRequestHook = new MethodHook<AddRequest>(
  () => agentPrototype.addRequest,
  method => {
    agentPrototype.addRequest = method;
  },
  next =>
    function (request, options, ...rest) {
      intercept(request, options, () => next.call(this, request, options, ...rest));
    },
);

/** Agents that replace `addRequest`, and requests without an agent, come here with a socket. */
const onSocketHook = new MethodHook<OnSocket>(
  () => requestPrototype.onSocket,
  method => {
    requestPrototype.onSocket = method;
  },
  next =>
    function (socket, error) {
      if (error !== undefined || socket === null || socket === undefined || taken.has(this)) {
        next.call(this, socket, error);
        return;
      }
      let failure: Error | undefined;
      // While the request waits, an error of its socket would end the process if there were no listener.
      const onError = (reason: Error) => {
        failure = reason;
      };
      socket.on("error", onError);
      const end = (reason: Error | undefined) => {
        socket.off("error", onError);
        next.call(this, socket, reason);
      };
      // For a socket that is already closed, node:http would wait forever for its close event.
      const send = () => end(failure ?? (socket.destroyed ? connectionReset("socket hang up") : undefined));
      intercept(this, {}, send, end);
    },
);

function intercept(
  request: ClientRequest,
  options: NodeRequestOptions,
  send: () => void,
  end?: (error?: Error) => void,
): void {
  const interceptor = taken.has(request) ? undefined : interceptors.at(-1);
  if (interceptor === undefined) {
    send();
    return;
  }
  takeRequest(interceptor, request, options, send, end);
}

/** Passes a request to an interceptor. No other interceptor gets it later. */
export function takeRequest(
  interceptor: NodeInterceptor,
  request: ClientRequest,
  options: NodeRequestOptions,
  send: () => void,
  end: (error?: Error) => void = error => requestPrototype.onSocket.call(request, null, error),
): void {
  taken.add(request);
  interceptor(request, options, send, end);
}

/** Whether a request went through a hub. */
export function isTaken(request: ClientRequest): boolean {
  return taken.has(request);
}

/** The error that node:http gives a request whose connection has ended without an error. */
export function connectionReset(message: string): Error {
  return Object.assign(new Error(message), { code: "ECONNRESET" });
}

/**
 * Sends every request of node:http and node:https through an interceptor. Returns a function that ends it. Several
 * installations may be ended in any order.
 */
export function hookNodeHttp(interceptor: NodeInterceptor): () => void {
  // Always a new function: one hub may be installed twice.
  const own: NodeInterceptor = (...request) => interceptor(...request);
  interceptors.push(own);
  addRequestHook.install();
  onSocketHook.install();
  return () => {
    const at = interceptors.indexOf(own);
    if (at === -1) return;
    interceptors.splice(at, 1);
    if (interceptors.length > 0) return;
    addRequestHook.remove();
    onSocketHook.remove();
  };
}
