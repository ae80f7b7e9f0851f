import type { Envelope, EventBody, TelemetryEvent } from "./events.ts";

/**
 * An event on its way to the sinks, as its two parts. The object that has both is built for the first sink that needs it:
 * the sinks of this package that only encode an event do not.
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
