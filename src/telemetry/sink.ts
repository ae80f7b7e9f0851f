import type { TelemetryEvent } from "./events.ts";

/** What gauges are read from, when somebody asks for them. A hub is one. */
export interface GaugeSource {
  snapshot(): { readonly inFlight: number; readonly waiting: number };
}

/** Where events go. One that throws breaks nothing; what it did not take is counted. */
export interface Sink {
  /** For messages and counts: `jsonl`, `sqlite`. */
  readonly name: string;
  /** False while nobody would hear of an event; absent for always true. Asked before each one is built. */
  readonly isListening?: boolean;
  /** Events that were given up, because they came faster than they could be written, or could not be. */
  readonly dropped?: number;
  /** Called for every event, in the middle of a request: it must return at once. */
  take(event: TelemetryEvent): void;
  watch?(hub: GaugeSource): void;
  /** Resolves when what was taken so far is where it belongs. */
  flush?(): Promise<void>;
  close?(): Promise<void>;
}
