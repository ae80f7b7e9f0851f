/** How a tracer takes part in calls while they run. Results reach it as events, under the same `call_id`. */

/** A call that begins. */
export interface StartedCall {
  /** The `call_id` of its events. */
  readonly callId: string;
  /** The HTTP method. */
  readonly method: string;
  /** The canonical host. */
  readonly host: string;
  /** Scheme, host and port: `https://api.example.org`. */
  readonly origin: string;
  /** True for a refresh that the hub makes itself. */
  readonly isBackground: boolean;
}

/** An attempt that begins. Its waits are over, except for node:http: its headers are fixed before the waits. */
export interface StartedAttempt {
  /** The `attempt` of its event. */
  readonly attempt: number;
  /** The HTTP method. */
  readonly method: string;
  /** Scheme, host and port: a redirect may lead to another one. */
  readonly origin: string;
}

/** The trace of one call. */
export interface CallTrace {
  /** Called before each attempt is sent. */
  attemptStarted(attempt: StartedAttempt): AttemptTrace;
}

/** The trace of one attempt. */
export interface AttemptTrace {
  /** Header fields to send: name, value, name, value, names in lower case. Fields of the request are not replaced. */
  readonly headers: readonly string[];
  /**
   * The attempt is credited to another call, because the caller that led a coalesced request left before it was sent. The
   * event of the attempt has this `callId` and `attempt`.
   */
  movedTo(callId: string, attempt: number): void;
  /** The attempt was not sent, and has no event. */
  dropped(): void;
}

/** Traces calls. `telemetry.listener` has one when a sink has one. */
export interface Tracer {
  /** Called when a call begins, in the asynchronous context of its caller. Returns undefined for a call without trace. */
  callStarted(call: StartedCall): CallTrace | undefined;
}
