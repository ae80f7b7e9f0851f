import { type Dispatcher, errors } from "undici";
import type { Clock } from "./clock.ts";
import type { SimFact, WireRequest } from "./facts.ts";
import type { NetworkPlan, Plan } from "./plan.ts";
import { CREDITS_HEADER } from "./policy.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Random } from "./random.ts";
import { CONCURRENCY, type SimResponse, type SimServer } from "./sim-server.ts";

/** Dependencies of every request of a process. */
export interface SimWireDeps {
  readonly plan: Plan;
  readonly process: number;
  readonly clock: Clock;
  readonly time: ProcessTime;
  readonly random: Random;
  readonly servers: ReadonlyMap<string, SimServer>;
  readonly emit: (fact: SimFact) => void;
  /** Marks a request as changed in the current turn of the event loop. */
  readonly touch: (request: WireRequest) => void;
  readonly nextId: () => number;
}

const FIRST_CHUNK = Buffer.alloc(10);

/** One request and its response on the simulated network. */
export class WireExchange implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  rawHeaders = null;
  rawTrailers = null;
  readonly #deps: SimWireDeps;
  readonly #network: NetworkPlan;
  readonly #free: () => void;
  readonly #request: WireRequest;
  readonly #server: SimServer;
  readonly #isConditional: boolean;
  readonly #handler: Dispatcher.DispatchHandler;
  #isOver = false;
  #isServing = false;
  #onResume: (() => void) | undefined;

  /** `free` is called when the connection can be reused. */
  constructor(
    deps: SimWireDeps,
    free: () => void,
    request: WireRequest,
    server: SimServer,
    { headers }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    this.#deps = deps;
    this.#network = deps.plan.network;
    this.#free = free;
    this.#request = request;
    this.#server = server;
    this.#isConditional = Array.isArray(headers) && headers.includes("if-none-match");
    this.#handler = handler;
  }

  connect(connected: () => void): void {
    this.#request.isCold = true;
    const isRefused = this.#server.outage?.how === "refuse";
    this.#later(this.#deps.clock.nowUs, this.#network.connectMs * 1000, () => {
      if (isRefused) this.#fail(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
      else {
        connected();
        this.write();
      }
    });
  }

  /** undici writes the headers of a request with a body together with its first chunk. */
  write(): void {
    const { clock, plan } = this.#deps;
    this.#handler.onRequestStart?.(this, null);
    if (this.aborted) return;
    const { bodyMs } = this.#request.call;
    if (bodyMs === 0) {
      this.#writeHeaders();
      return;
    }
    if (plan.sabotage === "early-stamps") this.#handler.onBodySent?.(FIRST_CHUNK);
    this.#later(clock.nowUs, bodyMs * 1000, () => {
      if (this.#isOver) return;
      this.#deps.touch(this.#request);
      this.#writeHeaders();
    });
  }

  #writeHeaders(): void {
    const { clock, emit, random } = this.#deps;
    const request = this.#request;
    request.writtenUs = clock.nowUs;
    emit({ kind: "written", atUs: clock.nowUs, request });
    if (request.call.method === "POST") this.#handler.onBodySent?.(FIRST_CHUNK);
    this.#handler.onRequestSent?.();
    const lateUs = request.isCold ? random.whole(0, this.#network.coldMs * 1000) : 0;
    clock.at(clock.nowUs + this.#travelUs() + lateUs, undefined, nowUs => this.#arrive(nowUs));
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.aborted = true;
    this.reason = reason;
    this.#deps.touch(this.#request);
    this.#finish("dropped");
    this.#handler.onResponseError?.(this, reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    const go = this.#onResume;
    this.#onResume = undefined;
    if (go !== undefined) this.#later(this.#deps.clock.nowUs, 0, go);
  }

  /** Runs at the server's time, even while the process is blocked. */
  #arrive(nowUs: number): void {
    const { clock, emit, random } = this.#deps;
    const request = this.#request;
    request.arrivedUs = nowUs;
    emit({ kind: "arrived", atUs: nowUs, request });
    const how = this.#server.outage?.how;
    const answer = this.#server.receive(request, this.#isConditional, nowUs);
    // A request that was aborted before it arrived is counted, but not served.
    if (this.#isOver && answer.rejectedBy === CONCURRENCY) return;
    if (answer.rejectedBy !== undefined) emit({ kind: "rejected", atUs: nowUs, request, by: answer.rejectedBy });
    if (this.#isOver) return;
    if (how === "hang" && answer.rejectedBy === undefined) {
      this.#later(nowUs, this.#network.headersTimeoutMs * 1000, () => this.#fail(new errors.HeadersTimeoutError()));
      return;
    }
    this.#server.requestStarted(request);
    this.#isServing = true;
    const serviceUs = random.whole(0, this.#server.plan.server.serviceMs * 1000);
    clock.at(nowUs + serviceUs, undefined, sentUs => {
      this.#served();
      const isBroken = how === "reset" || how === "refuse";
      this.#later(sentUs, this.#travelUs(), () =>
        isBroken ? this.#fail(new errors.SocketError("other side closed")) : this.#head(answer, nowUs),
      );
    });
  }

  #head(answer: SimResponse, arrivedUs: number): void {
    if (this.#isOver) return;
    const { clock, emit, touch, time } = this.#deps;
    const { status, maxAgeS, headers, usedCredits } = answer;
    touch(this.#request);
    emit({
      kind: "head",
      atUs: clock.nowUs,
      request: this.#request,
      status,
      retryAfterMs: answer.retryAfter?.effectiveMs(time.wallUs),
      // The date is that of the arrival, rounded down to whole seconds. Connecting counts too.
      freshUntilUs: maxAgeS > 0 ? arrivedUs + (maxAgeS - 2) * 1_000_000 : undefined,
      usedCredits,
    });
    const { [CREDITS_HEADER]: _credits, ...unheard } = headers;
    const heard = this.#deps.plan.sabotage === "unheard-costs" ? unheard : headers;
    this.#handler.onResponseStarted?.();
    this.#handler.onResponseStart?.(this, status, heard as Record<string, string>, "");
    if (!this.#isOver) this.#later(clock.nowUs, this.#deps.random.whole(0, 20_000), () => this.#body(answer));
  }

  #body(answer: SimResponse): void {
    if (this.#isOver) return;
    if (this.paused) {
      this.#onResume = () => this.#body(answer);
      return;
    }
    this.#deps.touch(this.#request);
    if (answer.bodyBytes > 0 && this.#request.call.method !== "HEAD" && answer.status !== 304)
      this.#handler.onResponseData?.(this, Buffer.alloc(answer.bodyBytes));
    if (this.#isOver) return;
    if (answer.isCut) {
      this.#fail(new errors.SocketError("other side closed"));
      return;
    }
    if (this.#deps.plan.sabotage === "lost-ends" && this.#request.id % 5 === 4) return;
    this.#finish("complete");
    this.#handler.onResponseEnd?.(this, {});
    this.#free();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#deps.touch(this.#request);
    this.#finish("failed");
    this.#handler.onResponseError?.(this, error);
  }

  #finish(how: "complete" | "failed" | "dropped"): void {
    const { clock, emit } = this.#deps;
    this.#isOver = true;
    this.#request.endedUs = clock.nowUs;
    emit({ kind: "ended", atUs: clock.nowUs, request: this.#request, how });
    // A real server notices the abort a moment later, but the client cannot know what it rejects meanwhile.
    this.#served();
  }

  #served(): void {
    if (this.#isServing) this.#server.requestEnded(this.#request);
    this.#isServing = false;
  }

  #travelUs(): number {
    return this.#network.delayMs * 1000 + this.#deps.random.whole(0, this.#network.jitterMs * 1000);
  }

  /** Runs on the event loop of the process, `us` after `sinceUs`. */
  #later(sinceUs: number, us: number, run: () => void): void {
    this.#deps.clock.at(sinceUs + us, this.#deps.time, run);
  }
}
