import { optionHint } from "../core/text/nearest.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Role } from "../policy/roles.ts";

/** Options of `acquire` and `run`. */
export interface AcquireRequest {
  /**
   * The host that is called, `api.example.org`; with a port only where the policy names one. A bad name is a
   * RangeError.
   */
  readonly host: string;
  /** Which of the host's budgets the request uses. @default "metadata" */
  readonly role?: Role | undefined;
  /** The path of the URL, `/ols4/api`. Needed only for hosts that the policy splits by path. @default the whole host */
  readonly path?: string | undefined;
  /** The HTTP method. A HEAD uses no units unless the policy sets `count_head`. @default "GET" */
  readonly method?: string | undefined;
  /**
   * How many units of every window the request uses: an integer of at least 1, and at most the smallest limit that
   * applies. @default 1
   */
  readonly weight?: number | undefined;
  /**
   * What the request uses of other units than requests, `{ credits: 10 }`: whole numbers of 0 or more, at most the
   * smallest limit of the unit. All of them are taken together with the request, or nothing is. `requests` is the same
   * as `weight`. @default the policy's `call_costs`, else 1 of each unit that a limit counts
   */
  readonly costs?: Readonly<Record<string, number>> | undefined;
  /** Aborting it ends the wait: the call rejects with the signal's reason. @default none */
  readonly signal?: AbortSignal | undefined;
  /**
   * The longest wait in milliseconds, at least 0. With 0 the call never waits, with Infinity it waits as long as it
   * takes.
   * @default the policy's `max_delay_ms` for rates and cooldowns, no bound for concurrency slots
   */
  readonly maxWaitMs?: number | undefined;
}

/** Options of `tryAcquire` and `check`. Neither waits, so there is no `maxWaitMs` and no `signal`. */
export type ImmediateRequest = Omit<AcquireRequest, "maxWaitMs" | "signal">;

const IMMEDIATE_OPTIONS = Object.keys({
  host: 0,
  role: 0,
  path: 0,
  method: 0,
  weight: 0,
  costs: 0,
} satisfies Record<keyof ImmediateRequest, 0>);
const WAIT_OPTIONS = Object.keys({ signal: 0, maxWaitMs: 0 } satisfies Record<
  Exclude<keyof AcquireRequest, keyof ImmediateRequest>,
  0
>);

/** The request as the gate takes it. Throws a TypeError for an option that the method does not have. */
export function entryOf(request: AcquireRequest, caller: "acquire" | "run"): EntryRequest {
  checkObject(request, caller);
  for (const option in request)
    if (!isImmediateOption(option) && option !== "signal" && option !== "maxWaitMs")
      throw unknownOption(option, caller, [...IMMEDIATE_OPTIONS, ...WAIT_OPTIONS]);
  const { host, role = "metadata", path, method, weight, costs, signal, maxWaitMs } = request;
  return {
    host,
    role,
    path,
    method,
    weight,
    costs,
    signal,
    maxWaitMs,
    stamp: caller === "run" ? "written" : "granted",
  };
}

/** The same for a method that never waits. */
export function immediateEntryOf(request: ImmediateRequest, caller: "tryAcquire" | "check"): EntryRequest {
  checkObject(request, caller);
  for (const option in request) if (!isImmediateOption(option)) throw unknownOption(option, caller, IMMEDIATE_OPTIONS);
  const { host, role = "metadata", path, method, weight, costs } = request;
  return { host, role, path, method, weight, costs, signal: undefined, maxWaitMs: 0, stamp: "granted" };
}

/** A switch over literals takes half the time of a lookup in a Set, and every grant calls this. */
function isImmediateOption(option: string): boolean {
  switch (option) {
    case "host":
    case "role":
    case "path":
    case "method":
    case "weight":
    case "costs":
      return true;
    default:
      return false;
  }
}

function checkObject(request: unknown, caller: string): void {
  if (typeof request === "object" && request !== null) return;
  const found = request === undefined || request === null ? String(request) : `a ${typeof request}`;
  throw new TypeError(`${caller}: expected an object such as { host: "api.example.org" }, found ${found}`);
}

function unknownOption(option: string, caller: string, known: readonly string[]): TypeError {
  return new TypeError(`${caller}: unknown option ${JSON.stringify(option)}: ${optionHint(option, known)}`);
}
