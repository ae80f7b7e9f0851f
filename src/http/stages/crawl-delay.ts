import { RateLimitExceeded } from "../../errors.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { RobotsReader, RobotsReading } from "../robots/robots-reader.ts";
import type { OutgoingRequest, RequestHandle, ResponseSink, SendRequest } from "./stage.ts";

export interface CrawlDelayDeps {
  readonly robots: RobotsReader;
  readonly time: Time;
}

/** Holds the first requests to a host until its robots.txt was read, so that its Crawl-delay applies to them too. */
export function crawlDelayStage(deps: CrawlDelayDeps, next: SendRequest): SendRequest {
  const { robots } = deps;
  return (request, sink) => {
    if (!robots.applies(request)) return next(request, sink);
    if (request.path === "/robots.txt") return next(request, robots.observe(request, sink));
    const reading = robots.read(request);
    return reading === undefined ? next(request, sink) : new HeldRequest(deps.time, reading, next, request, sink);
  };
}

/**
 * The wait for robots.txt is part of the call's `maxWaitMs`. A request that may not wait as long is refused: it might be
 * sent too early for the Crawl-delay.
 */
class HeldRequest implements RequestHandle {
  readonly #time: Time;
  readonly #reading: RobotsReading;
  readonly #next: SendRequest;
  readonly #request: OutgoingRequest;
  readonly #sink: ResponseSink;
  readonly #heldUs: number;
  #timer: Timer | undefined;
  #handle: RequestHandle | undefined;
  #isPaused = false;
  /** Refused or aborted. */
  #isOver = false;

  constructor(time: Time, reading: RobotsReading, next: SendRequest, request: OutgoingRequest, sink: ResponseSink) {
    this.#time = time;
    this.#reading = reading;
    this.#next = next;
    this.#request = request;
    this.#sink = sink;
    this.#heldUs = time.monotonicUs();
    const { maxWaitMs = Number.POSITIVE_INFINITY } = request.call;
    if (maxWaitMs === 0) queueMicrotask(() => this.#refuse(0));
    else if (maxWaitMs !== Number.POSITIVE_INFINITY)
      this.#timer = time.setTimer(maxWaitMs, () => this.#refuse(maxWaitMs));
    reading.done.then(() => this.#send());
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
    this.#end();
    this.#handle?.abort(reason);
  }

  #end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  #send(): void {
    if (this.#isOver) return;
    this.#timer?.cancel();
    const { call } = this.#request;
    const { maxWaitMs } = call;
    const waitedMs = (this.#time.monotonicUs() - this.#heldUs) / 1000;
    const left = maxWaitMs === undefined ? call : { ...call, maxWaitMs: Math.max(0, maxWaitMs - waitedMs) };
    this.#handle = this.#next({ ...this.#request, call: left, needsCallerContext: true }, this.#sink);
    if (this.#isPaused) this.#handle.pause();
  }

  #refuse(maxWaitMs: number): void {
    if (this.#isOver) return;
    this.#end();
    const { host, role } = this.#request;
    this.#sink.failed(
      new RateLimitExceeded({
        host,
        role,
        constraint: { kind: "spacing", owner: host, limit: "Crawl-delay (robots.txt is being read)" },
        retryAfterMs: Math.max(0, (this.#reading.endsByUs - this.#time.monotonicUs()) / 1000),
        maxWaitMs,
      }),
    );
  }
}
