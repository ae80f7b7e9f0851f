/** One request from its arrival to its last byte: counted, judged at the door, directed by the script, answered. */
import { setImmediate } from "node:timers/promises";
import type { Time } from "../../time/time.ts";
import { type SimulatedReply, type SimulatedRequest, text } from "./exchange.ts";
import type { HostDirectory } from "./host-directory.ts";
import { type Ledger, LedgerRecorder } from "./ledger.ts";
import { LimitEnforcer } from "./limit-enforcer.ts";
import { LIMITS } from "./limits.ts";
import { bodyOf, disconnect, type NodeRequest, type NodeResponse, send, simulatedRequestOf } from "./node-http.ts";
import { type ScriptedReply, ScriptRunner } from "./script-runner.ts";

/** Addresses whose visits are remembered. Beyond that the eldest is forgotten, and may fail once more. */
const ADDRESSES_MAX = 100_000;

export class RequestHandler {
  readonly script = new ScriptRunner();
  readonly #enforcer = new LimitEnforcer(LIMITS);
  readonly #recorder = new LedgerRecorder();
  readonly #visits = new Map<string, number>();
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

  /** Something that the simulation itself did wrong. */
  fault(error: Error): void {
    this.#recorder.fault(error.stack ?? String(error));
  }

  async serve(request: NodeRequest, response: NodeResponse, isTls: boolean): Promise<void> {
    const nowUs = this.#time.monotonicUs();
    const visit = simulatedRequestOf(request, isTls, this.#time.wallMs());
    if (!this.#directory.knows(visit.host)) {
      await this.#send(visit, response, straight(text(`the simulated internet has no host ${visit.host}\n`, 421)));
      return;
    }
    const nowMs = (nowUs - this.#startUs) / 1000;
    this.#recorder.arrived(visit.host, nowMs);
    const decision = this.#enforcer.decide(visit, nowUs, this.script.limitFactorFor(visit, nowMs));
    if (decision.kind === "blocked") {
      this.#recorder.ended(visit.host, "blocked");
      disconnect(response);
    } else if (decision.kind === "rejected") {
      this.#recorder.ended(visit.host, "rejected", decision.reply.status);
      await this.#send(visit, response, straight(decision.reply));
    } else {
      response.once("close", decision.release);
      // Whoever has come in the same turn is counted before anybody is served: the time to serve one is not the next one's
      // delay.
      await setImmediate();
      const whole = { ...visit, earlier: this.#earlier(visit), body: await bodyOf(request) };
      const scripted = this.script.apply(whole, nowMs, asked => announced(this.#answer(asked), decision.headers));
      this.#recorder.ended(visit.host, "served", scripted.ending === "answered" ? scripted.reply.status : undefined);
      await this.#send(whole, response, scripted, decision.release);
    }
  }

  async #send(
    visit: SimulatedRequest,
    response: NodeResponse,
    scripted: ScriptedReply,
    release?: () => void,
  ): Promise<void> {
    if (scripted.delayMs > 0) await this.#time.sleep(scripted.delayMs);
    if (scripted.ending === "reset") disconnect(response);
    else if (scripted.ending === "answered") await send(visit, response, scripted, release, this.#time);
  }

  #answer(visit: SimulatedRequest): SimulatedReply {
    try {
      return this.#directory.answer(visit);
    } catch (error) {
      this.#recorder.fault(`${visit.method} ${visit.host}${visit.path}${visit.search}: ${String(error)}`);
      return text("the simulation has failed\n", 500);
    }
  }

  #earlier({ method, host, path, search }: SimulatedRequest): number {
    if (method !== "GET") return 0;
    const address = `${host}${path}${search}`;
    const earlier = this.#visits.get(address) ?? 0;
    this.#visits.set(address, earlier + 1);
    const [eldest] = this.#visits.size > ADDRESSES_MAX ? this.#visits.keys() : [];
    if (eldest !== undefined) this.#visits.delete(eldest);
    return earlier;
  }
}

function straight(reply: SimulatedReply): ScriptedReply {
  return { reply, delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, ending: "answered" };
}

function announced(reply: SimulatedReply, headers: Readonly<Record<string, string>>): SimulatedReply {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}
