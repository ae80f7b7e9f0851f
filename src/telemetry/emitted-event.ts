import type { Envelope, EventBody, TelemetryEvent } from "./events.ts";

/**
 * An event for the sinks, as two parts: body and envelope. The object with both is built when the first sink needs it.
 * Sinks of this package that only encode an event do not need it.
 */
export class EmittedEvent {
  readonly body: EventBody;
  readonly envelope: Envelope;
  #event: TelemetryEvent | undefined;

  constructor(body: EventBody, envelope: Envelope, event?: TelemetryEvent) {
    this.body = body;
    this.envelope = envelope;
    this.#event = event;
  }

  static of(event: TelemetryEvent): EmittedEvent {
    return new EmittedEvent(event, event, event);
  }

  /** Frozen, because all sinks get the same object. */
  get event(): TelemetryEvent {
    if (this.#event === undefined) {
      const { ts, run_id, config_hash } = this.envelope;
      // The spread comes first, because a spread after other properties is five times as slow.
      this.#event = Object.freeze({ ...(this.body as object), ts, run_id, config_hash } as TelemetryEvent);
    }
    return this.#event;
  }
}
