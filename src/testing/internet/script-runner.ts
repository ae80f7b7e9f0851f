import { html, redirect, reply, type SimulatedReply, type SimulatedRequest } from "./exchange.ts";
import { matchesHostPath } from "./limit-enforcer.ts";
import type { ScriptStep, StepCondition } from "./script-step.ts";

/** How a request is answered after all steps of the script have been applied. */
export interface ScriptedReply {
  readonly reply: SimulatedReply;
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  readonly ending: "answered" | "reset" | "silence";
}

interface ActiveStep {
  readonly step: ScriptStep;
  /** How many requests have matched its condition. */
  matched: number;
}

/** The active steps. Host, path, time and the number of earlier requests decide which of them affect a request. */
export class ScriptRunner {
  readonly #active = new Map<number, ActiveStep>();
  #lastNumber = 0;

  /** Returns the number with which the step can be stopped. */
  start(step: ScriptStep): number {
    this.#lastNumber += 1;
    this.#active.set(this.#lastNumber, { step, matched: 0 });
    return this.#lastNumber;
  }

  stop(number: number): void {
    this.#active.delete(number);
  }

  /** The factor by which the limits for this request are multiplied. */
  limitFactorFor(request: SimulatedRequest, nowMs: number): number {
    let factor = 1;
    for (const { step } of this.#active.values()) {
      if (step.effect === "limits" && isActive(step, request, nowMs)) factor *= step.factor;
    }
    return factor;
  }

  /** Applies all steps that match. `answer` is called only if no step has replaced the reply. */
  apply(
    request: SimulatedRequest,
    nowMs: number,
    answer: (request: SimulatedRequest) => SimulatedReply,
  ): ScriptedReply {
    const steps = [...this.#active.values()]
      .filter(active => this.#applies(active, request, nowMs))
      .map(({ step }) => step);
    const start: ScriptedReply = {
      reply: NO_REPLY,
      delayMs: 0,
      bytesPerSecond: Number.POSITIVE_INFINITY,
      ending: "answered",
    };
    const scripted = steps.reduce((result, step) => withEffect(result, step, request), start);
    const isReplaced = scripted.reply !== NO_REPLY || scripted.ending !== "answered";
    const answered = isReplaced ? scripted : { ...scripted, reply: answer(withoutHops(request, steps)) };
    return steps.reduce(truncated, answered);
  }

  #applies(active: ActiveStep, request: SimulatedRequest, nowMs: number): boolean {
    const { step } = active;
    if (step.effect === "limits" || !isActive(step, request, nowMs)) return false;
    const number = active.matched;
    active.matched += 1;
    const skip = step.skip ?? 0;
    return number >= skip && number < skip + (step.times ?? Number.POSITIVE_INFINITY);
  }
}

/** Means "no reply yet". It is compared by identity and never sent. */
const NO_REPLY: SimulatedReply = reply("", "text/plain", 503, {});

function isActive(
  { host, fromMs = 0, untilMs = Number.POSITIVE_INFINITY }: StepCondition,
  request: SimulatedRequest,
  nowMs: number,
): boolean {
  return (host === "*" || matchesHostPath(host, request)) && nowMs >= fromMs && nowMs < untilMs;
}

function withEffect(result: ScriptedReply, step: ScriptStep, request: SimulatedRequest): ScriptedReply {
  switch (step.effect) {
    case "outage":
      if (step.how === "reset" || step.how === "silence") return { ...result, ending: step.how };
      return { ...result, reply: html("Service Unavailable", "<h1>Down for maintenance</h1>", step.status ?? 503) };
    case "slow":
      return {
        ...result,
        delayMs: result.delayMs + (step.delayMs ?? 0),
        bytesPerSecond: Math.min(result.bytesPerSecond, step.bytesPerSecond ?? Number.POSITIVE_INFINITY),
      };
    case "throttle": {
      const headers = retryAfterOf(step, request);
      return { ...result, reply: html("Too Many Requests", "<h1>Slow down</h1>", step.status ?? 429, headers) };
    }
    case "html":
      return { ...result, reply: html("Sign in", "<h1>Sign in to continue</h1>") };
    case "challenge":
      return { ...result, reply: html("Just a moment...", "<p>Checking</p>", 403, { "cf-mitigated": "challenge" }) };
    case "redirects":
      return { ...result, reply: nextHop(step.hops, request) ?? result.reply };
    case "truncate":
    case "limits":
      return result;
  }
}

function retryAfterOf(
  { retryAfterS, asDate }: ScriptStep & { readonly effect: "throttle" },
  { wallMs }: SimulatedRequest,
) {
  if (retryAfterS === undefined) return {};
  // An HTTP date has whole seconds. Rounded up, so that it is never earlier than the script wants.
  const date = new Date(Math.ceil(wallMs / 1000 + retryAfterS) * 1000).toUTCString();
  return { "retry-after": asDate ? date : String(retryAfterS) };
}

/** The number of redirects done so far, as the last parameter of the query. */
const HOP = /[?&]hop=(\d+)$/;

/** The next redirect to the same URL; undefined after the last one. */
function nextHop(hops: number, { isTls, host, path, search }: SimulatedRequest): SimulatedReply | undefined {
  const [, done = "0"] = HOP.exec(search) ?? [];
  if (Number(done) >= hops) return undefined;
  const query = search.replace(HOP, "");
  const nextQuery = `${query === "" ? "?" : `${query}&`}hop=${Number(done) + 1}`;
  return redirect(`${isTls ? "https" : "http"}://${host}${path}${nextQuery}`);
}

/** The request without the counter of redirects, as the service expects it. */
function withoutHops(request: SimulatedRequest, steps: readonly ScriptStep[]): SimulatedRequest {
  if (!steps.some(({ effect }) => effect === "redirects")) return request;
  const search = request.search.replace(HOP, "");
  return { ...request, search, query: new URLSearchParams(search) };
}

function truncated(result: ScriptedReply, step: ScriptStep): ScriptedReply {
  const { reply: complete } = result;
  if (step.effect !== "truncate" || complete.body.length === 0) return result;
  return { ...result, reply: { ...complete, cutAtBytes: step.atBytes ?? Math.floor(complete.body.length / 2) } };
}
