import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { stringify } from "node:querystring";
import type { Dispatcher } from "undici";
import { checkCall, type InnerCallOptions } from "./call-options.ts";
import { CallRecord } from "./call-record.ts";
import { flatHeaders } from "./headers.ts";
import type { HostNames } from "./host-names.ts";
import type { SignalAges } from "./signal-ages.ts";
import type { OutgoingRequest } from "./stages/stage.ts";

export interface OutgoingRequestDeps {
  readonly hostNames: HostNames;
  readonly signalAges: SignalAges;
  readonly nowUs: number;
  /** Used for calls without `deadlineMs`. */
  readonly deadlineMs: number;
}

/** Converts undici's options into the form that the stages use. Throws for an invalid option, header or URL. */
export function toOutgoingRequest(
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  call: InnerCallOptions,
  { hostNames, signalAges, nowUs, deadlineMs }: OutgoingRequestDeps,
): OutgoingRequest {
  checkCall(call);
  const origin = hostNames.lastOriginIfEqual(
    typeof options.origin === "string" ? options.origin : (options.origin?.origin ?? ""),
  );
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
    body: options.body,
    options,
    call,
    startedUs: nowUs,
    signalSinceUs: signalAges.sinceUs(signal, nowUs),
    deadlineUs: (fetchCall?.sinceUs ?? nowUs) + Math.round((call.deadlineMs ?? deadlineMs) * 1000),
    cacheMode: fetchCall?.cacheMode ?? "default",
    isSingleAttempt: false,
    runInCallerContext: callerContextOf(handler),
    needsCallerContext: false,
    record: new CallRecord(),
    cause: "call",
    retryDelayMs: 0,
    observer: onBodySent || onRequestSent || onResponseStarted ? handler : undefined,
  };
}

/** undici's own handlers hold the caller's context already; a snapshot would cost another microsecond per request. */
function callerContextOf(handler: Dispatcher.DispatchHandler): OutgoingRequest["runInCallerContext"] {
  return handler instanceof AsyncResource ? work => handler.runInAsyncScope(work) : AsyncLocalStorage.snapshot();
}

/** Added before the stages read the path. undici refuses `query` for a path that has a query; here it is appended. */
function withQuery(path: string, query: object): string {
  const text = stringify(query as Record<string, string>);
  return text === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${text}`;
}
