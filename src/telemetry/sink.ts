import type { StartedCall, Tracer } from "../http/tracing.ts";
import type { EventType, TelemetryEvent } from "./events.ts";

/** Numbers of requests at one instant. */
export interface Gauges {
  /** Requests that were sent and have not ended. */
  readonly inFlight: number;
  /** Requests in a queue. */
  readonly waiting: number;
}

/** The source of gauges when metrics are collected, such as a hub. */
export interface GaugeSource {
  /** Has the gauges among other numbers. */
  snapshot(): Gauges;
  /** Only the gauges, for a source whose snapshot takes long. @default snapshot */
  counts?(): Gauges;
}

/** The telemetry that a sink belongs to. */
export interface SinkOwner {
  /** The id of the sink in this telemetry: its name, or `name-2`, `name-3` for further sinks of the same name. */
  readonly id: string;
  /** Events that each sink dropped so far, by the id of the sink. Read when metrics are collected. */
  dropped(): Readonly<Record<string, number>>;
}

/**
 * Receives events. A sink that throws, or whose promise rejects, does not affect requests; the events that it did not take
 * are counted, and its first error becomes a process warning.
 */
export interface Sink {
  /** For messages and counts: `jsonl`, `sqlite`. */
  readonly name: string;
  /** Whether it wants events of this type at present; others are not built for it. Called for each event. @default all */
  listensTo?(type: EventType): boolean;
  /** Number of events that were dropped because the queue was full or a write failed. @default 0 */
  readonly dropped?: number;
  /** Traces the calls of the hubs that the telemetry listens to. @default none */
  readonly tracer?: Tracer | undefined;
  /**
   * Called when a call of a hub begins, in the asynchronous context of its caller, also if it is not traced. The events
   * of the call have the same `call_id`. @default none
   */
  callStarted?(call: StartedCall): void;
  /** Called once, before the first event. */
  attach?(owner: SinkOwner): void;
  /**
   * Called for every event, within a request: it must return at once. The event is frozen: all sinks get the same. A
   * promise that it returns says when the event is written, and `telemetry.close()` waits for it.
   */
  take(event: TelemetryEvent): unknown;
  /** Sets the hub that gauges are read from. */
  watch?(hub: GaugeSource): void;
  /** Resolves when the events taken so far are written or dropped. */
  flush?(): Promise<void>;
  /** Writes the queued events before it returns, because the process is about to end. */
  flushSync?(): void;
  /**
   * Writes the queued events and closes files. Called once, after the last event.
   * @param signal aborted after `closeTimeoutMs` of the telemetry: then the sink must stop and count the events that it has
   *   not written. If it does not settle at once, all events that it has not confirmed by `take` or `flush` count as dropped.
   *   The same holds if `close` rejects and the sink has no `dropped`.
   */
  close?(signal?: AbortSignal): Promise<void>;
}
