/**
 * What passes between the stages of a request. Each stage is a `Send`: it takes a request, hands it on (once, several
 * times or not at all) and tells the sink. undici is met at the two ends only: `call.ts` outside, `attempt.ts` inside.
 */
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import type { Role } from "../../policy/roles.ts";
import type { CallRecord } from "../call-record.ts";

/** By lower-case names; a field that came several times has several values. */
export type HeaderFields = Readonly<Record<string, string | string[] | undefined>>;

/** What a caller may say about a request beside what fetch knows. */
export interface CallOptions {
  /** @default "metadata" */
  readonly role?: Role | undefined;
  /** Whose idea the request was, where resolvers have circuits of their own. */
  readonly resolver?: string | undefined;
  /** The group of the policy whose budget it draws on, for hosts that the policy does not know. */
  readonly service?: string | undefined;
  /** Units of every window. @default 1 */
  readonly weight?: number | undefined;
  /** The longest it may wait before it is sent: 0 never waits, Infinity as long as it takes. @default the policy's */
  readonly maxWaitMs?: number | undefined;
  /** The longest it may wait for a host that is cut off. @default as `maxWaitMs` */
  readonly maxBreakerWaitMs?: number | undefined;
  /** Everything together, waits, attempts and body, in milliseconds. @default no end for the body, the hub's for retries */
  readonly deadlineMs?: number | undefined;
  /** Answers from the cache or not at all. @default false */
  readonly offline?: boolean | undefined;
  /** How many redirects are followed for callers that do not follow them as fetch does. @default 0 */
  readonly maxRedirections?: number | undefined;
  /** May be sent twice although its method is not GET, HEAD or OPTIONS. @default by its method */
  readonly idempotent?: boolean | undefined;
}

/** A request on its way out. Stages hand on changed copies. */
export interface OutgoingRequest {
  /** Scheme, host and port: `https://api.example.org`. */
  readonly origin: string;
  /** The host as policies, windows and circuits know it. */
  readonly host: string;
  readonly role: Role;
  /** With the query. */
  readonly path: string;
  readonly method: string;
  /** Name, value, name, value; names in lower case. */
  readonly headers: readonly string[];
  readonly body: Dispatcher.DispatchOptions["body"];
  /** As they came, for what no stage looks at. */
  readonly options: Dispatcher.DispatchOptions;
  readonly call: CallOptions;
  /** When the call came, in monotonic microseconds. */
  readonly startedUs: number;
  /** Instant after which no further attempt begins, in monotonic microseconds. */
  readonly deadlineUs: number;
  /** Tried once only, because an older answer is at hand. */
  readonly isSingleAttempt: boolean;
  /** Runs something in the asynchronous context of the caller. */
  readonly runInCallerContext: (work: () => void) => void;
  /** It goes out from somebody else's asynchronous context: an earlier attempt's, hop's, or asker's. */
  readonly needsCallerContext: boolean;
  /** What is noted down on the way. */
  readonly record: CallRecord;
  /** Who wants to know how the sending goes; told by the wire, past all stages. */
  readonly observer: SendObserver | undefined;
}

export type SendObserver = Pick<Dispatcher.DispatchHandler, "onBodySent" | "onRequestSent" | "onResponseStarted">;

export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderFields;
  /** As undici has them, or the fields once more where a stage has changed them. */
  readonly rawHeaders: unknown;
}

/** Where an answer goes: one head, data, and one end; or a failure at any moment. */
export interface ResponseSink {
  /** An interim answer, 1xx. */
  interim(head: ResponseHead): void;
  started(head: ResponseHead): void;
  data(chunk: Buffer): void;
  ended(trailers: HeaderFields, rawTrailers: unknown): void;
  failed(error: unknown): void;
  /** The connection now belongs to the caller; nothing else is told. */
  upgraded(head: ResponseHead, socket: Duplex): void;
}

/** How a request under way is steered. What comes after its end changes nothing. */
export interface RequestHandle {
  pause(): void;
  resume(): void;
  /** Ends it. The sink hears nothing more. */
  abort(reason: unknown): void;
}

/** Never throws and never tells the sink before it has returned. */
export type SendRequest = (request: OutgoingRequest, sink: ResponseSink) => RequestHandle;
