import { type Dispatcher, errors } from "undici";
import type { Clock } from "./clock.ts";
import type { SimFact, WireRequest } from "./facts.ts";
import type { NetworkPlan, Plan } from "./plan.ts";
import type { ProcessTime } from "./process-time.ts";
import type { Random } from "./random.ts";
import { CONCURRENCY, type SimResponse, type SimServer } from "./sim-server.ts";

/** What every request of a process has to do with. */
export interface SimWireDeps {
  readonly plan: Plan;
  readonly process: number;
  readonly clock: Clock;
  readonly time: ProcessTime;
  readonly random: Random;
  readonly servers: ReadonlyMap<string, SimServer>;
  readonly emit: (fact: SimFact) => void;
  /** Notes that something happens to this one in the present turn. */
  readonly touch: (sending: WireRequest) => void;
  readonly nextId: () => number;
}

/** One request and its answer. */
export class WireExchange implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  rawHeaders = null;
  rawTrailers = null;
  readonly #deps: SimWireDeps;
  readonly #network: NetworkPlan;
  readonly #free: () => void;
  readonly #sending: WireRequest;
  readonly #server: SimServer;
  readonly #isConditional: boolean;
  readonly #handler: Dispatcher.DispatchHandler;
  #isOver = false;
  #isServing = false;
  #onResume: (() => void) | undefined;

  /** `free` is told when its connection may be used again. */
  constructor(
    deps: SimWireDeps,
    free: () => void,
    sending: WireRequest,
    server: SimServer,
    { headers }: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
  ) {
    this.#deps = deps;
    this.#network = deps.plan.network;
    this.#free = free;
    this.#sending = sending;
    this.#server = server;
    this.#isConditional = Array.isArray(headers) && headers.includes("if-none-match");
    this.#handler = handler;
  }

  connect(connected: () => void): void {
    this.#sending.isCold = true;
    const isRefused = this.#server.outage?.how === "refuse";
    this.#later(this.#deps.clock.nowUs, this.#network.connectMs * 1000, () => {
      if (isRefused) this.#fail(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
      else {
        connected();
        this.write();
      }
    });
  }

  write(): void {
    const { clock, emit, random } = this.#deps;
    this.#handler.onRequestStart?.(this, null);
    if (this.aborted) return;
    const sending = this.#sending;
    sending.writtenUs = clock.nowUs;
    emit({ kind: "written", atUs: clock.nowUs, sending });
    this.#handler.onRequestSent?.();
    const lateUs = sending.isCold ? random.whole(0, this.#network.coldMs * 1000) : 0;
    clock.at(clock.nowUs + this.#travelUs() + lateUs, undefined, nowUs => this.#arrive(nowUs));
  }

  abort(reason: Error): void {
    if (this.#isOver) return;
    this.aborted = true;
    this.reason = reason;
    this.#deps.touch(this.#sending);
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

  /** The server goes by its own time, whatever the process is busy with. */
  #arrive(nowUs: number): void {
    const { clock, emit, random } = this.#deps;
    const sending = this.#sending;
    sending.arrivedUs = nowUs;
    emit({ kind: "arrived", atUs: nowUs, sending });
    const how = this.#server.outage?.how;
    const answer = this.#server.receive(sending, this.#isConditional, nowUs);
    // Who hung up before it came is counted, and neither served nor told anything.
    if (this.#isOver && answer.rejectedBy === CONCURRENCY) return;
    if (answer.rejectedBy !== undefined) emit({ kind: "rejected", atUs: nowUs, sending, by: answer.rejectedBy });
    if (this.#isOver) return;
    if (how === "hang" && answer.rejectedBy === undefined) {
      this.#later(nowUs, this.#network.headersTimeoutMs * 1000, () => this.#fail(new errors.HeadersTimeoutError()));
      return;
    }
    this.#server.requestStarted(sending.role);
    this.#isServing = true;
    const serviceUs = random.whole(0, this.#server.plan.server.serviceMs * 1000);
    clock.at(nowUs + serviceUs, undefined, sentUs => {
      this.#served();
      const isBroken = how === "reset" || how === "refuse";
      this.#later(sentUs, this.#travelUs(), () =>
        isBroken ? this.#fail(new errors.SocketError("other side closed")) : this.#head(answer, sentUs),
      );
    });
  }

  #head(answer: SimResponse, sentUs: number): void {
    if (this.#isOver) return;
    const { clock, emit, touch, time } = this.#deps;
    const { status, maxAgeS } = answer;
    touch(this.#sending);
    emit({
      kind: "head",
      atUs: clock.nowUs,
      sending: this.#sending,
      status,
      retryAfterMs: answer.asking?.meantMs(time.wallMs()),
      // Dates are in whole seconds, and rounded down.
      freshUntilUs: maxAgeS > 0 ? sentUs + (maxAgeS - 2) * 1_000_000 : undefined,
    });
    this.#handler.onResponseStarted?.();
    this.#handler.onResponseStart?.(this, status, answer.headers as Record<string, string>, "");
    if (!this.#isOver) this.#later(clock.nowUs, this.#deps.random.whole(0, 20_000), () => this.#body(answer));
  }

  #body(answer: SimResponse): void {
    if (this.#isOver) return;
    if (this.paused) {
      this.#onResume = () => this.#body(answer);
      return;
    }
    this.#deps.touch(this.#sending);
    if (answer.bodyBytes > 0 && this.#sending.call.method !== "HEAD" && answer.status !== 304)
      this.#handler.onResponseData?.(this, Buffer.alloc(answer.bodyBytes));
    if (this.#isOver) return;
    if (answer.isCut) {
      this.#fail(new errors.SocketError("other side closed"));
      return;
    }
    if (this.#deps.plan.sabotage === "lost-ends" && this.#sending.id % 5 === 4) return;
    this.#finish("complete");
    this.#handler.onResponseEnd?.(this, {});
    this.#free();
  }

  #fail(error: Error): void {
    if (this.#isOver) return;
    this.#deps.touch(this.#sending);
    this.#finish("failed");
    this.#handler.onResponseError?.(this, error);
  }

  #finish(how: "complete" | "failed" | "dropped"): void {
    const { clock, emit } = this.#deps;
    this.#isOver = true;
    this.#sending.endedUs = clock.nowUs;
    emit({ kind: "ended", atUs: clock.nowUs, sending: this.#sending, how });
    // In truth a server hears of it a moment later; what it would reject meanwhile nobody could have known.
    this.#served();
  }

  #served(): void {
    if (this.#isServing) this.#server.over(this.#sending.role);
    this.#isServing = false;
  }

  #travelUs(): number {
    return this.#network.delayMs * 1000 + this.#deps.random.whole(0, this.#network.jitterMs * 1000);
  }

  /** On the process's loop, so long after an instant. */
  #later(sinceUs: number, us: number, run: () => void): void {
    this.#deps.clock.at(sinceUs + us, this.#deps.time, run);
  }
}
