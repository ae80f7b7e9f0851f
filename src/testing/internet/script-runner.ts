import { html, redirect, reply, type SimulatedReply, type SimulatedRequest } from "./exchange.ts";
import { isAt } from "./limit-enforcer.ts";

/** Whom an act befalls, and when. What is left out means always, and everyone. */
export interface StepCondition {
  /** A host, or a host with the beginning of a path; `*` is everyone. */
  readonly host: string;
  /** Since the internet started. */
  readonly fromMs?: number;
  readonly untilMs?: number;
  /** Requests that are let off first. */
  readonly skip?: number;
  /** Requests it befalls in all. */
  readonly times?: number;
}

export type StepEffect =
  /** `reset` cuts the connection, `silence` never answers. @default an error page with `status` 503 */
  | { readonly act: "outage"; readonly how?: "status" | "reset" | "silence"; readonly status?: number }
  | { readonly act: "slow"; readonly delayMs?: number; readonly bytesPerSecond?: number }
  /** `retryAfter` in seconds, or as a date so many seconds from now. */
  | { readonly act: "throttle"; readonly status?: 429 | 503; readonly retryAfterS?: number; readonly asDate?: boolean }
  /** The connection breaks after so many bytes of the body. @default half of them */
  | { readonly act: "truncate"; readonly atBytes?: number }
  /** A page for people instead of whatever was asked for. */
  | { readonly act: "html" }
  | { readonly act: "challenge" }
  /** So many redirects before the answer. */
  | { readonly act: "redirects"; readonly hops: number }
  /** The host's limits are so much smaller while it lasts, and announced so. */
  | { readonly act: "limits"; readonly factor: number };

export type ScriptStep = StepCondition & StepEffect;

const STEP_EFFECTS = ["outage", "slow", "throttle", "truncate", "html", "challenge", "redirects", "limits"];

/** @throws TypeError that names what is wrong with an act. */
export function checkStep(act: ScriptStep): void {
  if (typeof act?.host !== "string" || act.host === "") {
    throw new TypeError(`script: ${JSON.stringify(act)} names no host; write one, a host with a path, or "*"`);
  }
  if (!STEP_EFFECTS.includes(act.act)) {
    throw new TypeError(`script: ${JSON.stringify(act.act)} is no act; expected one of ${STEP_EFFECTS.join(", ")}`);
  }
}

/** How the script changes what a service would have said. */
export interface ScriptedReply {
  readonly reply: SimulatedReply;
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  readonly ending: "answered" | "reset" | "silence";
}

interface ActiveStep {
  readonly act: ScriptStep;
  seen: number;
}

/** The acts that are on. Which of them befall a request depends on its place, the time and how many came before. */
export class ScriptRunner {
  readonly #active = new Map<number, ActiveStep>();
  #lastNumber = 0;

  /** Its number, with which it can be stopped. */
  start(act: ScriptStep): number {
    this.#lastNumber += 1;
    this.#active.set(this.#lastNumber, { act, seen: 0 });
    return this.#lastNumber;
  }

  stop(number: number): void {
    this.#active.delete(number);
  }

  /** What is left of the limits of a place. */
  limitFactorFor(visit: SimulatedRequest, nowMs: number): number {
    let factor = 1;
    for (const { act } of this.#active.values()) {
      if (act.act === "limits" && isOn(act, visit, nowMs)) factor *= act.factor;
    }
    return factor;
  }

  /** What becomes of a request; the acts that befall a number of requests count it. */
  apply(visit: SimulatedRequest, nowMs: number, answer: (visit: SimulatedRequest) => SimulatedReply): ScriptedReply {
    const steps = [...this.#active.values()].filter(active => this.#applies(active, visit, nowMs));
    const start: ScriptedReply = {
      reply: SILENT,
      delayMs: 0,
      bytesPerSecond: Number.POSITIVE_INFINITY,
      ending: "answered",
    };
    const scripted = steps.reduce((so, { act }) => withEffect(so, act, visit), start);
    const isSaid = scripted.reply !== SILENT || scripted.ending !== "answered";
    const said = isSaid ? scripted : { ...scripted, reply: answer(withoutHops(visit, steps)) };
    return steps.reduce((so, { act }) => cut(so, act), said);
  }

  #applies(active: ActiveStep, visit: SimulatedRequest, nowMs: number): boolean {
    const { act } = active;
    if (act.act === "limits" || !isOn(act, visit, nowMs)) return false;
    const number = active.seen;
    active.seen += 1;
    const skip = act.skip ?? 0;
    return number >= skip && number < skip + (act.times ?? Number.POSITIVE_INFINITY);
  }
}

const SILENT: SimulatedReply = reply("", "text/plain", 503, {});

function isOn(
  { host, fromMs = 0, untilMs = Number.POSITIVE_INFINITY }: StepCondition,
  visit: SimulatedRequest,
  nowMs: number,
): boolean {
  return (host === "*" || isAt(host, visit)) && nowMs >= fromMs && nowMs < untilMs;
}

function withEffect(so: ScriptedReply, act: ScriptStep, visit: SimulatedRequest): ScriptedReply {
  switch (act.act) {
    case "outage":
      if (act.how === "reset" || act.how === "silence") return { ...so, ending: act.how };
      return { ...so, reply: html("Service Unavailable", "<h1>Down for maintenance</h1>", act.status ?? 503) };
    case "slow":
      return {
        ...so,
        delayMs: so.delayMs + (act.delayMs ?? 0),
        bytesPerSecond: Math.min(so.bytesPerSecond, act.bytesPerSecond ?? Number.POSITIVE_INFINITY),
      };
    case "throttle":
      return { ...so, reply: html("Too Many Requests", "<h1>Slow down</h1>", act.status ?? 429, waitFor(act, visit)) };
    case "html":
      return { ...so, reply: html("Sign in", "<h1>Sign in to continue</h1>") };
    case "challenge":
      return { ...so, reply: html("Just a moment...", "<p>Checking</p>", 403, { "cf-mitigated": "challenge" }) };
    case "redirects":
      return { ...so, reply: hop(act.hops, visit) ?? so.reply };
    case "truncate":
    case "limits":
      return so;
  }
}

function waitFor({ retryAfterS, asDate }: ScriptStep & { readonly act: "throttle" }, { wallMs }: SimulatedRequest) {
  if (retryAfterS === undefined) return {};
  // Rounded up to a whole second, which is all that a date can say.
  const date = new Date(Math.ceil(wallMs / 1000 + retryAfterS) * 1000).toUTCString();
  return { "retry-after": asDate ? date : String(retryAfterS) };
}

/** Always the last of the query. */
const HOP = /[?&]hop=(\d+)$/;

/** The next of so many redirects to the same address, counted in its query. */
function hop(hops: number, { isTls, host, path, search }: SimulatedRequest): SimulatedReply | undefined {
  const [, done = "0"] = HOP.exec(search) ?? [];
  if (Number(done) >= hops) return undefined;
  const bare = search.replace(HOP, "");
  const mark = `${bare === "" ? "?" : `${bare}&`}hop=${Number(done) + 1}`;
  return redirect(`${isTls ? "https" : "http"}://${host}${path}${mark}`);
}

/** What was asked for in the first place: the service does not know of the way that led back to it. */
function withoutHops(visit: SimulatedRequest, steps: readonly ActiveStep[]): SimulatedRequest {
  if (!steps.some(({ act }) => act.act === "redirects")) return visit;
  const search = visit.search.replace(HOP, "");
  return { ...visit, search, query: new URLSearchParams(search) };
}

function cut(so: ScriptedReply, act: ScriptStep): ScriptedReply {
  if (act.act !== "truncate" || so.reply.body.length === 0) return so;
  return { ...so, reply: { ...so.reply, cutAtBytes: act.atBytes ?? Math.floor(so.reply.body.length / 2) } };
}
