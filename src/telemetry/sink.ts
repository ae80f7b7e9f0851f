import type { TelemetryEvent } from "./events.ts";

/** The source of gauges when metrics are collected, such as a hub. */
export interface GaugeSource {
  /** `inFlight` and `waiting` are numbers of requests. */
  snapshot(): { readonly inFlight: number; readonly waiting: number };
}

/** Receives events. A sink that throws does not affect requests; the events it did not take are counted. */
export interface Sink {
  /** For messages and counts: `jsonl`, `sqlite`. */
  readonly name: string;
  /** False while events would be ignored; then they are not built. Read before each event. @default true */
  readonly isListening?: boolean;
  /** Number of events that were dropped because the queue was full or a write failed. @default 0 */
  readonly dropped?: number;
  /** Called for every event, within a request: it must return at once. */
  take(event: TelemetryEvent): void;
  /** Sets the hub that gauges are read from. */
  watch?(hub: GaugeSource): void;
  /** Resolves when the events taken so far are written or dropped. */
  flush?(): Promise<void>;
  /** Writes the queued events and closes files. Called once, after the last event. */
  close?(): Promise<void>;
}
