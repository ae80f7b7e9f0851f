import type { Random } from "../../../sim/random.ts";
import { BEHAVIOURS, type Behaviour } from "./ledger-server.ts";

/** Host names of the server, and one where no server listens. */
export const HOSTS = ["a.test", "b.test", "c.test"] as const;
export const DEAD_HOST = "dead.test";

/** What a step does to its calls. `leave`: the first of several identical calls is aborted while it is being answered. */
export type StepKind = "calls" | "abort queued" | "abort sent" | "cancel body" | "deadline" | "leave";

/** Identical calls that are made at once. */
export interface ScriptStep {
  readonly kind: StepKind;
  readonly url: string;
  readonly path: string;
  readonly method: "GET" | "HEAD" | "PUT";
  readonly copies: number;
  readonly maxWaitMs: number;
  readonly maxRedirections: number;
  readonly client: Client;
}

/** How a call is made: by `hub.fetch`, by `hub.request`, or by node:http with an agent of the hub. */
export type Client = "fetch" | "request" | "node:http";
const CLIENTS: readonly Client[] = ["fetch", "request", "request", "node:http"];

const ANSWERING = BEHAVIOURS.filter(behaviour => !["hold", "endless", "slow"].includes(behaviour));

/** Steps of one script, which are taken one after the other. */
export function drawScript(random: Random, id: string): readonly ScriptStep[] {
  return Array.from({ length: random.whole(1, 3) }, (_, index) => drawStep(random, `${id}-${index}`, id));
}

function drawStep(random: Random, unique: string, script: string): ScriptStep {
  const drawn = random.whole(1, 100);
  const host = random.pick(HOSTS);
  const base = { method: "GET" as const, copies: 1, maxRedirections: 0, client: random.pick(CLIENTS) };
  const to = (kind: StepKind, behaviour: Behaviour, name = unique, more: Partial<ScriptStep> = {}): ScriptStep => {
    const path = `/${behaviour}/${name}`;
    const maxWaitMs = random.chance(0.15) ? 0 : 3_600_000;
    return { ...base, kind, url: `http://${host}${path}`, path, maxWaitMs, ...more };
  };
  if (drawn <= 5) return to("abort sent", "hold", unique, { maxWaitMs: 3_600_000 });
  if (drawn <= 9) return to("abort queued", random.pick(ANSWERING));
  if (drawn <= 13) return to("cancel body", "endless");
  if (drawn <= 17) return to("deadline", "hold");
  if (drawn <= 24)
    return to("leave", "slow", unique, {
      copies: random.whole(1, 3),
      maxWaitMs: 3_600_000,
      client: random.pick(["fetch", "request"]),
    });
  if (drawn <= 27) return to("calls", "ok", unique, { url: `http://${DEAD_HOST}/ok/${unique}` });
  if (drawn <= 37) {
    const path = `/to/${random.pick(HOSTS)}/${random.pick(ANSWERING)}/${unique}`;
    return to("calls", "ok", unique, {
      url: `http://${host}${path}`,
      path,
      maxRedirections: random.whole(1, 2),
      client: random.pick(["request", "node:http"]),
    });
  }
  // A name that other steps of the script use too is requested again: hits, revalidations, refreshes.
  const name = random.chance(0.5) ? unique : script;
  return to("calls", random.pick(ANSWERING), name, {
    method: random.chance(0.1) ? "HEAD" : random.chance(0.06) ? "PUT" : "GET",
    copies: random.chance(0.25) ? random.whole(2, 4) : 1,
  });
}
