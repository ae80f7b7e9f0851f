import { AsyncResource } from "node:async_hooks";
import { stringify } from "node:querystring";
import { type Dispatcher, errors } from "undici";
import type { Time } from "../time/time.ts";
import type { InnerCallOptions } from "./call-options.ts";
import { CallRecord } from "./call-record.ts";
import { checkCall } from "./check-call.ts";
import { flatHeaders } from "./headers.ts";
import type { HostNames } from "./host-names.ts";
import type { OutgoingRequest } from "./stages/stage.ts";

export interface OutgoingRequestDeps {
  /** A reload replaces `hostNames`. */
  readonly policy: { readonly hostNames: HostNames };
  readonly signalAges: SignalAges;
  readonly time: Time;
  /** For calls without `deadlineMs`. */
  readonly defaultDeadlineMs: number;
}

/** Converts undici's options into the form that the stages use. Throws for an invalid option, header or URL. */
export function toOutgoingRequest(
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  call: InnerCallOptions,
  { policy: { hostNames }, signalAges, time, defaultDeadlineMs }: OutgoingRequestDeps,
): OutgoingRequest {
  checkCall(call);
  checkUpgrade(options, handler);
  const nowUs = time.monotonicUs();
  const origin = hostNames.lastOriginIfEqual(originOf(options));
  const { onBodySent, onRequestSent, onResponseStarted } = handler;
  const { fetchCall } = call;
  const headers = flatHeaders(options.headers);
  const { signal } = fetchCall ?? (options as { readonly signal?: unknown });
  return {
    origin,
    host: hostNames.of(origin),
    role: call.role ?? "metadata",
    path: options.query === undefined ? options.path : withQuery(options.path, options.query),
    method: options.method,
    headers: fetchCall === undefined ? headers : fetchCall.headersFor(origin, headers),
    // `options` has no body after a redirect that drops it.
    body: options.body ? (fetchCall?.bodyBytes ?? options.body) : options.body,
    options,
    call,
    startedUs: nowUs,
    signalSinceUs: signalAges.sinceUs(signal, nowUs),
    deadlineUs: (fetchCall?.sinceUs ?? nowUs) + Math.round((call.deadlineMs ?? defaultDeadlineMs) * 1000),
    cacheMode: fetchCall?.cacheMode ?? "default",
    isSingleAttempt: false,
    callerContext: callerContextOf(handler),
    needsCallerContext: false,
    record: new CallRecord(),
    cause: "call",
    retryDelayMs: 0,
    observer: onBodySent || onRequestSent || onResponseStarted ? handler : undefined,
  };
}

/** Without this check, the caller would never learn of the connection that it has got. */
function checkUpgrade({ upgrade, method }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
  if ((!upgrade && method !== "CONNECT") || typeof handler.onRequestUpgrade === "function") return;
  const name = upgrade ? "option upgrade" : "method CONNECT";
  throw new errors.InvalidArgumentError(
    `the ${name} gives a connection instead of a response: use dispatcher.upgrade or dispatcher.connect`,
  );
}

/** The origin that undici's options give as a text or URL. */
export function originOf({ origin }: Dispatcher.DispatchOptions): string {
  return typeof origin === "string" ? origin : (origin?.origin ?? "");
}

/**
 * The handlers of `undici.request` hold the caller's context already, those of fetch do not. An AsyncResource costs a
 * request much less time and memory than `AsyncLocalStorage.snapshot()`, which defines properties of a new function.
 */
function callerContextOf(handler: Dispatcher.DispatchHandler): AsyncResource {
  return handler instanceof AsyncResource ? handler : new AsyncResource("docstokg.request", MANUAL_DESTROY);
}

const MANUAL_DESTROY = { requireManualDestroy: true };

/**
 * When the hub first saw each AbortSignal. A signal does not say when its timeout began. If several calls share a signal,
 * it is older than the last of them.
 */
export class SignalAges {
  readonly #sinceUs = new WeakMap<object, number>();

  /** `nowUs` for the first call with this signal; undefined for a call without one. */
  sinceUs(signal: unknown, nowUs: number): number | undefined {
    if (typeof signal !== "object" || signal === null) return undefined;
    const sinceUs = this.#sinceUs.get(signal);
    if (sinceUs !== undefined) return sinceUs;
    this.#sinceUs.set(signal, nowUs);
    return nowUs;
  }
}

/** Adds `query` before the stages read the path. undici refuses it for a path that has a query; here it is appended. */
function withQuery(path: string, query: object): string {
  const text = stringify(query as Record<string, string>);
  return text === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${text}`;
}
