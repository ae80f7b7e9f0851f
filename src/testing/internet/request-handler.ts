/** Serves one request: counts it, checks it against the limits, applies the script, and sends the reply. */
import { setImmediate } from "node:timers/promises";
import type { Time } from "../../time/time.ts";
import { type SimulatedReply, type SimulatedRequest, text } from "./exchange.ts";
import type { HostDirectory } from "./host-directory.ts";
import { type Ledger, LedgerRecorder } from "./ledger.ts";
import { LimitEnforcer } from "./limit-enforcer.ts";
import { LIMITS } from "./limits.ts";
import { bodyOf, disconnect, type NodeResponse, type ServerRequest, send, simulatedRequestOf } from "./node-http.ts";
import { type ScriptedReply, ScriptRunner } from "./script-runner.ts";

/**
 * How many URLs have a count of earlier requests. If there are more, the oldest count is dropped, and its URL may fail
 * once more.
 */
const COUNTED_URLS_MAX = 100_000;

export class RequestHandler {
  readonly script = new ScriptRunner();
  readonly #enforcer = new LimitEnforcer(LIMITS);
  readonly #recorder = new LedgerRecorder();
  readonly #requestsByUrl = new Map<string, number>();
  readonly #directory: HostDirectory;
  readonly #time: Time;
  readonly #startUs: number;

  constructor(directory: HostDirectory, time: Time) {
    this.#directory = directory;
    this.#time = time;
    this.#startUs = time.monotonicUs();
  }

  ledger(): Ledger {
    return this.#recorder.report(this.#enforcer.report());
  }

  /** Records an error of the simulation itself. */
  fault(error: Error): void {
    this.#recorder.fault(error.stack ?? String(error));
  }

  async serve(request: ServerRequest, response: NodeResponse, isTls: boolean): Promise<void> {
    const nowUs = this.#time.monotonicUs();
    const simulated = simulatedRequestOf(request, isTls, this.#time.wallMs());
    if (!this.#directory.knows(simulated.host)) {
      await this.#send(
        simulated,
        response,
        unscripted(text(`the simulated internet has no host ${simulated.host}\n`, 421)),
      );
      return;
    }
    const nowMs = (nowUs - this.#startUs) / 1000;
    this.#recorder.arrived(simulated.host, nowMs);
    const decision = this.#enforcer.decide(simulated, nowUs, this.script.limitFactorFor(simulated, nowMs));
    if (decision.kind === "blocked") {
      this.#recorder.ended(simulated.host, "blocked");
      disconnect(response);
    } else if (decision.kind === "rejected") {
      this.#recorder.ended(simulated.host, "rejected", decision.reply.status);
      await this.#send(simulated, response, unscripted(decision.reply));
    } else {
      response.once("close", decision.release);
      // All requests that arrived in this turn of the event loop are counted before one is answered, so that answering
      // one does not delay the arrival of the next.
      await setImmediate();
      const complete = { ...simulated, earlierRequests: this.#countEarlier(simulated), body: await bodyOf(request) };
      const scripted = this.script.apply(complete, nowMs, inner => withHeaders(this.#answer(inner), decision.headers));
      this.#recorder.ended(
        simulated.host,
        "served",
        scripted.ending === "answered" ? scripted.reply.status : undefined,
      );
      await this.#send(complete, response, scripted, decision.release);
    }
  }

  async #send(
    simulated: SimulatedRequest,
    response: NodeResponse,
    scripted: ScriptedReply,
    release?: () => void,
  ): Promise<void> {
    if (scripted.delayMs > 0) await this.#time.sleep(scripted.delayMs);
    if (scripted.ending === "reset") disconnect(response);
    else if (scripted.ending === "answered") await send(simulated, response, scripted, release, this.#time);
  }

  #answer(simulated: SimulatedRequest): SimulatedReply {
    try {
      return this.#directory.answer(simulated);
    } catch (error) {
      this.#recorder.fault(
        `${simulated.method} ${simulated.host}${simulated.path}${simulated.search}: ${String(error)}`,
      );
      return text("the simulation has failed\n", 500);
    }
  }

  /** How many GET requests for the same URL came before. */
  #countEarlier({ method, host, path, search }: SimulatedRequest): number {
    if (method !== "GET") return 0;
    const url = `${host}${path}${search}`;
    const earlier = this.#requestsByUrl.get(url) ?? 0;
    this.#requestsByUrl.set(url, earlier + 1);
    const [oldest] = this.#requestsByUrl.size > COUNTED_URLS_MAX ? this.#requestsByUrl.keys() : [];
    if (oldest !== undefined) this.#requestsByUrl.delete(oldest);
    return earlier;
  }
}

function unscripted(reply: SimulatedReply): ScriptedReply {
  return { reply, delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, ending: "answered" };
}

function withHeaders(reply: SimulatedReply, headers: Readonly<Record<string, string>>): SimulatedReply {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}
