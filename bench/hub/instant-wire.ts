import { Dispatcher } from "undici";
import { BODY, FIELDS } from "./answer.ts";

/** A dispatcher without a network. It responds in the next microtask, so that only the code above it is measured. */
export class InstantWire extends Dispatcher {
  readonly #fields = { ...FIELDS, date: new Date().toUTCString() };
  /** Node's own fetch reads these. */
  readonly #rawFields = Object.entries(this.#fields).flatMap(field => field.map(text => Buffer.from(text)));

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    queueMicrotask(() => {
      const controller = new NoopController([...this.#rawFields]);
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, { ...this.#fields }, "OK");
      handler.onResponseData?.(controller, BODY);
      handler.onResponseEnd?.(controller, {});
    });
    return true;
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
