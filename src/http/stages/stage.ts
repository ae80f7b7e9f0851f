/**
 * The types between the stages of a request. A stage is a `SendRequest`: it takes a request, passes it to the next stage
 * (once, several times or not at all) and passes the response to the sink. Only the outermost stage (call.ts) and the
 * innermost one (attempt.ts) use undici's interfaces.
 */
import type { AsyncResource } from "node:async_hooks";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import type { CacheMode } from "../../core/cache/cache-control.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { SentKeys } from "../../policy/identity.ts";
import type { Role } from "../../policy/roles.ts";
import type { InnerCallOptions } from "../call-options.ts";
import type { CallRecord } from "../call-record.ts";
import type { AttemptCause } from "../http-events.ts";

/** A request to be sent. It is never changed: a stage passes on a changed copy. */
export interface OutgoingRequest {
  /** Scheme, host and port: `https://api.example.org`. */
  readonly origin: string;
  /** The name of the host in policies, windows and circuits. */
  readonly host: string;
  readonly role: Role;
  /** Path and query. */
  readonly path: string;
  readonly method: string;
  /** Name, value, name, value; names in lower case. */
  readonly headers: readonly string[];
  readonly body: Dispatcher.DispatchOptions["body"];
  /** As given by the caller, for options that no stage reads. */
  readonly options: Dispatcher.DispatchOptions;
  readonly call: InnerCallOptions;
  /** When the call began, in monotonic microseconds. */
  readonly startedUs: number;
  /** When the hub first saw the signal of the call, in monotonic microseconds; undefined for a call without one. */
  readonly signalSinceUs: number | undefined;
  /** No attempt begins after this instant, in monotonic microseconds. */
  readonly deadlineUs: number;
  /** The `cache` option of fetch. */
  readonly cacheMode: CacheMode;
  /** True when it is never retried, because a stored response can be served instead. */
  readonly isSingleAttempt: boolean;
  /** The asynchronous context of the caller (AsyncLocalStorage). */
  readonly callerContext: AsyncResource;
  /** True when it is sent from another asynchronous context than the caller's: of a timer, a response or another caller. */
  readonly needsCallerContext: boolean;
  /** Filled in by the stages. */
  readonly record: CallRecord;
  /** Why it is sent, for its event. */
  readonly cause: Exclude<AttemptCause, "probe">;
  /** Delay since the attempt before, in ms; 0 for the first one. */
  readonly retryDelayMs: number;
  /** Callbacks of the caller about the sending of the request; called by the innermost stage. */
  readonly observer: SendObserver | undefined;
}

export type SendObserver = Pick<Dispatcher.DispatchHandler, "onBodySent" | "onRequestSent" | "onResponseStarted">;

export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderFields;
  /** undici's raw headers, or `headers` when a stage has changed them. */
  readonly rawHeaders: unknown;
}

/** Receives a response: one head, data, and one end; or a failure at any moment. */
export interface ResponseSink {
  /** An interim response, 1xx. */
  interim(head: ResponseHead): void;
  started(head: ResponseHead): void;
  data(chunk: Buffer): void;
  ended(trailers: HeaderFields, rawTrailers: unknown): void;
  failed(error: unknown): void;
  /** The connection now belongs to the caller. No other method is called after this one. */
  upgraded(head: ResponseHead, socket: Duplex): void;
}

/** Controls a request that was sent. Calls after its end have no effect. */
export interface RequestHandle {
  pause(): void;
  resume(): void;
  /** Ends the request. No method of the sink is called afterwards. */
  abort(reason: unknown): void;
}

/** Never throws, and never calls the sink before it has returned. */
export type SendRequest = (request: OutgoingRequest, sink: ResponseSink) => RequestHandle;

/** The path and headers that are sent: those of the request, with the identification that its host wants. */
export interface SentFields extends Pick<OutgoingRequest, "path" | "headers"> {
  /** The keys in them. */
  readonly sentKeys: SentKeys;
}

/** As `SendRequest`, for a request that is sent with these fields instead of its own. */
export type SendIdentified = (request: OutgoingRequest, sink: ResponseSink, sent: SentFields) => RequestHandle;

/** Bytes of an unwanted response that are read to keep its connection; a longer one is aborted. */
export const DISCARDED_BYTES_MAX = 65_536;
/** Time for the body of an unwanted response in ms; a slower one is aborted. */
export const DISCARDED_MS_MAX = 1000;
