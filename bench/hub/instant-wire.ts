import { Dispatcher } from "undici";
import { BODY, FIELDS } from "./answer.ts";

/**
 * A dispatcher without a network, so that only the code above it is measured. It responds to all requests of one turn of
 * the event loop in the next turn, as sockets do. If it responded in microtasks, they would never end while callers send
 * further requests, and Node would keep the streams of all responses until then.
 */
export class InstantWire extends Dispatcher {
  #waiting: Dispatcher.DispatchHandler[] = [];
  readonly #fields = { ...FIELDS, date: new Date().toUTCString() };
  /** Node's own fetch reads these. */
  readonly #rawFields = Object.entries(this.#fields).flatMap(field => field.map(text => Buffer.from(text)));

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#waiting.length === 0) setImmediate(() => this.#respond());
    this.#waiting.push(handler);
    return true;
  }

  #respond(): void {
    const handlers = this.#waiting;
    this.#waiting = [];
    for (const handler of handlers) {
      const controller = new NoopController([...this.#rawFields]);
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, { ...this.#fields }, "OK");
      handler.onResponseData?.(controller, BODY);
      handler.onResponseEnd?.(controller, {});
    }
  }
}

/** The whole response is delivered at once, so there is nothing to pause or abort. */
class NoopController implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  readonly rawHeaders: Buffer[];
  readonly rawTrailers: Buffer[] = [];

  constructor(rawHeaders: Buffer[]) {
    this.rawHeaders = rawHeaders;
  }

  pause(): void {
    // A body has only a few hundred bytes.
  }

  resume(): void {
    // See pause.
  }

  abort(): void {
    // Not called in the benchmarks.
  }
}
