import type { RobotsReader } from "../robots/robots-reader.ts";
import type { OutgoingRequest, RequestHandle, ResponseSink, SendRequest } from "./stage.ts";

/** Holds the first requests to a host until its robots.txt was read, so that its Crawl-delay applies to them too. */
export function crawlDelayStage(robots: RobotsReader, next: SendRequest): SendRequest {
  return (request, sink) => {
    if (!robots.applies(request)) return next(request, sink);
    if (request.path === "/robots.txt") return next(request, robots.observe(request, sink));
    const reading = robots.read(request);
    return reading === undefined ? next(request, sink) : new HeldRequest(reading, next, request, sink);
  };
}

class HeldRequest implements RequestHandle {
  #handle: RequestHandle | undefined;
  #isPaused = false;
  #isAborted = false;

  constructor(until: Promise<void>, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    until.then(() => {
      if (this.#isAborted) return;
      this.#handle = next({ ...request, needsCallerContext: true }, sink);
      if (this.#isPaused) this.#handle.pause();
    });
  }

  pause(): void {
    this.#isPaused = true;
    this.#handle?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#handle?.resume();
  }

  abort(reason: unknown): void {
    this.#isAborted = true;
    this.#handle?.abort(reason);
  }
}
