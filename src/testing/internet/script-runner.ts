import { html, type Reply, redirect, reply, type Visit } from "./exchange.ts";
import { isAt } from "./limit-enforcer.ts";

/** Whom an act befalls, and when. What is left out means always, and everyone. */
export interface Scene {
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

export type Deed =
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

export type Act = Scene & Deed;

const DEEDS = ["outage", "slow", "throttle", "truncate", "html", "challenge", "redirects", "limits"];

/** @throws TypeError that names what is wrong with an act. */
export function checkAct(act: Act): void {
  if (typeof act?.host !== "string" || act.host === "") {
    throw new TypeError(`script: ${JSON.stringify(act)} names no host; write one, a host with a path, or "*"`);
  }
  if (!DEEDS.includes(act.act)) {
    throw new TypeError(`script: ${JSON.stringify(act.act)} is no act; expected one of ${DEEDS.join(", ")}`);
  }
}

/** How the script changes what a service would have said. */
export interface Direction {
  readonly reply: Reply;
  readonly delayMs: number;
  readonly bytesPerSecond: number;
  readonly fate: "answered" | "reset" | "silence";
}

interface Playing {
  readonly act: Act;
  seen: number;
}

/** The acts that are on. Which of them befall a request depends on its place, the time and how many came before. */
export class Script {
  readonly #playing = new Map<number, Playing>();
  #lastNumber = 0;

  /** Its number, with which it can be stopped. */
  play(act: Act): number {
    this.#lastNumber += 1;
    this.#playing.set(this.#lastNumber, { act, seen: 0 });
    return this.#lastNumber;
  }

  stop(number: number): void {
    this.#playing.delete(number);
  }

  /** What is left of the limits of a place. */
  factorFor(visit: Visit, nowMs: number): number {
    let factor = 1;
    for (const { act } of this.#playing.values()) {
      if (act.act === "limits" && isOn(act, visit, nowMs)) factor *= act.factor;
    }
    return factor;
  }

  /** What becomes of a request; the acts that befall a number of requests count it. */
  direct(visit: Visit, nowMs: number, answer: (visit: Visit) => Reply): Direction {
    const deeds = [...this.#playing.values()].filter(playing => this.#befalls(playing, visit, nowMs));
    const start: Direction = { reply: SILENT, delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, fate: "answered" };
    const direction = deeds.reduce((so, { act }) => perform(so, act, visit), start);
    const isSaid = direction.reply !== SILENT || direction.fate !== "answered";
    const said = isSaid ? direction : { ...direction, reply: answer(withoutHops(visit, deeds)) };
    return deeds.reduce((so, { act }) => cut(so, act), said);
  }

  #befalls(playing: Playing, visit: Visit, nowMs: number): boolean {
    const { act } = playing;
    if (act.act === "limits" || !isOn(act, visit, nowMs)) return false;
    const number = playing.seen;
    playing.seen += 1;
    const skip = act.skip ?? 0;
    return number >= skip && number < skip + (act.times ?? Number.POSITIVE_INFINITY);
  }
}

const SILENT: Reply = reply("", "text/plain", 503, {});

function isOn({ host, fromMs = 0, untilMs = Number.POSITIVE_INFINITY }: Scene, visit: Visit, nowMs: number): boolean {
  return (host === "*" || isAt(host, visit)) && nowMs >= fromMs && nowMs < untilMs;
}

function perform(so: Direction, act: Act, visit: Visit): Direction {
  switch (act.act) {
    case "outage":
      if (act.how === "reset" || act.how === "silence") return { ...so, fate: act.how };
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

function waitFor({ retryAfterS, asDate }: Act & { readonly act: "throttle" }, { wallMs }: Visit) {
  if (retryAfterS === undefined) return {};
  // Rounded up to a whole second, which is all that a date can say.
  const date = new Date(Math.ceil(wallMs / 1000 + retryAfterS) * 1000).toUTCString();
  return { "retry-after": asDate ? date : String(retryAfterS) };
}

/** Always the last of the query. */
const HOP = /[?&]hop=(\d+)$/;

/** The next of so many redirects to the same address, counted in its query. */
function hop(hops: number, { isTls, host, path, search }: Visit): Reply | undefined {
  const [, done = "0"] = HOP.exec(search) ?? [];
  if (Number(done) >= hops) return undefined;
  const bare = search.replace(HOP, "");
  const mark = `${bare === "" ? "?" : `${bare}&`}hop=${Number(done) + 1}`;
  return redirect(`${isTls ? "https" : "http"}://${host}${path}${mark}`);
}

/** What was asked for in the first place: the service does not know of the way that led back to it. */
function withoutHops(visit: Visit, deeds: readonly Playing[]): Visit {
  if (!deeds.some(({ act }) => act.act === "redirects")) return visit;
  const search = visit.search.replace(HOP, "");
  return { ...visit, search, query: new URLSearchParams(search) };
}

function cut(so: Direction, act: Act): Direction {
  if (act.act !== "truncate" || so.reply.body.length === 0) return so;
  return { ...so, reply: { ...so.reply, cutAtBytes: act.atBytes ?? Math.floor(so.reply.body.length / 2) } };
}
