import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ClientRequest } from "node:http";
import { isOwnSocket, ownDispatch } from "../wire/own-sockets.ts";
import { BypassedHosts } from "./bypassed-hosts.ts";
import { isTaken } from "./node-hooks.ts";

/** A request that did not go through the hub although one is installed. */
export interface BypassedRequest {
  readonly host: string;
  readonly client: "undici" | "node:http";
  /** Where the request was made; undefined when that is not known. */
  readonly stack: string | undefined;
}

/** The part of undici's requests that its channels publish. */
interface UndiciRequest {
  readonly origin?: string | URL | undefined;
}

/**
 * Finds requests that bypass an installed hub: their client has its own dispatcher or agent, or another module has
 * replaced the global dispatcher later. Each host is reported once.
 */
export class BypassDetector {
  readonly #onBypass: (request: BypassedRequest) => void;
  readonly #hosts = new BypassedHosts();
  /** The stacks in which requests of undici were made; undefined after the first report. */
  #stacks: WeakMap<object, string> | undefined = new WeakMap();

  constructor(onBypass: (request: BypassedRequest) => void) {
    this.#onBypass = onBypass;
  }

  /** @param watchesUndici false when the hub sends over connections that are not marked as its own */
  start(watchesUndici: boolean): () => void {
    const channels: readonly (readonly [string, (message: unknown) => void])[] = [
      ["http.client.request.start", this.#onNodeRequest],
      ...(watchesUndici
        ? ([
            ["undici:request:create", this.#onCreate],
            ["undici:client:sendHeaders", this.#onSend],
          ] as const)
        : []),
    ];
    for (const [name, listener] of channels) subscribe(name, listener);
    return () => {
      for (const [name, listener] of channels) unsubscribe(name, listener);
    };
  }

  /** This channel publishes in the stack of the program that sends, unlike `sendHeaders`. */
  readonly #onCreate = (message: unknown): void => {
    if (this.#stacks === undefined || ownDispatch.isRunning) return;
    const { request } = message as { readonly request: UndiciRequest };
    this.#stacks.set(request, stackBelow(this.#onCreate));
  };

  readonly #onSend = (message: unknown): void => {
    const { request, socket } = message as { readonly request: UndiciRequest; readonly socket: object };
    if (!isOwnSocket(socket)) this.#report("undici", String(request.origin), this.#stacks?.get(request));
  };

  readonly #onNodeRequest = (message: unknown): void => {
    const { request } = message as { readonly request: ClientRequest };
    if (!isTaken(request))
      this.#report("node:http", `${request.protocol}//${request.host}`, stackBelow(this.#onNodeRequest));
  };

  #report(client: BypassedRequest["client"], origin: string, stack: string | undefined): void {
    const host = this.#hosts.add(origin);
    if (host === undefined) return;
    // Only the first stack is shown, and collecting one for each request would cost time.
    this.#stacks = undefined;
    this.#onBypass({ host, client, stack });
  }
}

/** More than Node's default of ten frames, which are all frames of undici. */
const STACK_FRAMES = 40;
const FRAMES_SHOWN = 8;
/** undici may be installed under another name, such as `undici6`. */
const UNINTERESTING =
  /node:internal|node:diagnostics_channel|[\\/]node_modules[\\/]undici[^\\/]*[\\/]|^ *at new Promise/;

/**
 * The frames of the program that sends, without those of undici and Node, nor those of `listener` and what it calls: the
 * file of this module has another name in dist and in a bundle.
 */
function stackBelow(listener: (message: unknown) => void): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = STACK_FRAMES;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, listener);
  const [, ...frames] = (holder.stack ?? "").split("\n");
  Error.stackTraceLimit = stackTraceLimit;
  return frames
    .filter(frame => !UNINTERESTING.test(frame))
    .slice(0, FRAMES_SHOWN)
    .join("\n");
}
