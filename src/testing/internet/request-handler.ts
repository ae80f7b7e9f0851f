/** One request from its arrival to its last byte: counted, judged at the door, directed by the script, answered. */
import { setImmediate } from "node:timers/promises";
import type { Time } from "../../time/time.ts";
import { type Reply, text, type Visit } from "./exchange.ts";
import type { World } from "./host-directory.ts";
import { Bookkeeper, type Ledger } from "./ledger.ts";
import { Doorman } from "./limit-enforcer.ts";
import { LIMITS } from "./limits.ts";
import { bodyOf, disconnect, type ServerAnswer, type ServerRequest, send, visitOf } from "./node-http.ts";
import { type Direction, Script } from "./script-runner.ts";

/** Addresses whose visits are remembered. Beyond that the eldest is forgotten, and may fail once more. */
const MOST_ADDRESSES = 100_000;

export class Site {
  readonly script = new Script();
  readonly #doorman = new Doorman(LIMITS);
  readonly #books = new Bookkeeper();
  readonly #visits = new Map<string, number>();
  readonly #world: World;
  readonly #time: Time;
  readonly #startUs: number;

  constructor(world: World, time: Time) {
    this.#world = world;
    this.#time = time;
    this.#startUs = time.monotonicUs();
  }

  ledger(): Ledger {
    return this.#books.report(this.#doorman.report());
  }

  /** Something that the simulation itself did wrong. */
  fault(error: Error): void {
    this.#books.fault(error.stack ?? String(error));
  }

  async serve(request: ServerRequest, response: ServerAnswer, isTls: boolean): Promise<void> {
    const nowUs = this.#time.monotonicUs();
    const visit = visitOf(request, isTls, this.#time.wallMs());
    if (!this.#world.knows(visit.host)) {
      await this.#send(visit, response, straight(text(`the simulated internet has no host ${visit.host}\n`, 421)));
      return;
    }
    const nowMs = (nowUs - this.#startUs) / 1000;
    this.#books.arrived(visit.host, nowMs);
    const verdict = this.#doorman.arrive(visit, nowUs, this.script.factorFor(visit, nowMs));
    if (verdict.kind === "blocked") {
      this.#books.ended(visit.host, "blocked");
      disconnect(response);
    } else if (verdict.kind === "rejected") {
      this.#books.ended(visit.host, "rejected", verdict.reply.status);
      await this.#send(visit, response, straight(verdict.reply));
    } else {
      response.once("close", verdict.leave);
      // Whoever has come in the same turn is counted before anybody is served: the time to serve one is not the next one's
      // delay.
      await setImmediate();
      const whole = { ...visit, earlier: this.#earlier(visit), body: await bodyOf(request) };
      const direction = this.script.direct(whole, nowMs, asked => announced(this.#answer(asked), verdict.headers));
      this.#books.ended(visit.host, "served", direction.fate === "answered" ? direction.reply.status : undefined);
      await this.#send(whole, response, direction, verdict.leave);
    }
  }

  async #send(visit: Visit, response: ServerAnswer, direction: Direction, leave?: () => void): Promise<void> {
    if (direction.delayMs > 0) await this.#time.sleep(direction.delayMs);
    if (direction.fate === "reset") disconnect(response);
    else if (direction.fate === "answered") await send(visit, response, direction, leave, this.#time);
  }

  #answer(visit: Visit): Reply {
    try {
      return this.#world.answer(visit);
    } catch (error) {
      this.#books.fault(`${visit.method} ${visit.host}${visit.path}${visit.search}: ${String(error)}`);
      return text("the simulation has failed\n", 500);
    }
  }

  #earlier({ method, host, path, search }: Visit): number {
    if (method !== "GET") return 0;
    const address = `${host}${path}${search}`;
    const earlier = this.#visits.get(address) ?? 0;
    this.#visits.set(address, earlier + 1);
    const [eldest] = this.#visits.size > MOST_ADDRESSES ? this.#visits.keys() : [];
    if (eldest !== undefined) this.#visits.delete(eldest);
    return earlier;
  }
}

function straight(reply: Reply): Direction {
  return { reply, delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, fate: "answered" };
}

function announced(reply: Reply, headers: Readonly<Record<string, string>>): Reply {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}
