import { Dispatcher } from "undici";
import { BODY, FIELDS } from "./answer.ts";

/** A wire without a network: it answers in the next microtask, so that what is left is what happens above it. */
export class InstantWire extends Dispatcher {
  readonly #fields = { ...FIELDS, date: new Date().toUTCString() };

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    queueMicrotask(() => {
      const controller = new NoopController();
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, { ...this.#fields }, "OK");
      handler.onResponseData?.(controller, BODY);
      handler.onResponseEnd?.(controller, {});
    });
    return true;
  }
}

/** Everything comes at once: there is nothing to steer. */
class NoopController implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  readonly rawHeaders: Buffer[] = [];
  readonly rawTrailers: Buffer[] = [];

  pause(): void {
    // Never more than one body of a few hundred bytes.
  }

  resume(): void {
    // See pause.
  }

  abort(): void {
    // Nobody does.
  }
}
