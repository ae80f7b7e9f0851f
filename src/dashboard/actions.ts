import { operatorReason } from "../breaker/cooldowns.ts";
import type { BreakerTarget, OrderRequest } from "../breaker/orders.ts";
import type { Hub } from "../http/hub.ts";
import type { Acknowledgement, Operator } from "../http/operator.ts";
import { isRole, ROLES } from "../policy/roles.ts";
import { serviceOfName } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import type { ActionName, ActionResult } from "./dashboard-state.ts";

/** An order of the operator, checked. */
export interface Action {
  readonly name: ActionName;
  readonly target: BreakerTarget;
  /** How the page names the target: `api.example.org (landing)`. */
  readonly targetText: string;
  /** Only for `open` and `hold`. */
  readonly seconds: number;
  /** Why: one line. */
  readonly reason: string;
}

/** What a page may do to its source. */
export interface DashboardActions {
  readonly names: readonly ActionName[];
  run(action: Action): Promise<ActionResult>;
}

const SECONDS_MAX = 366 * 86_400;
const REASON_CHARS_MAX = 200;
/** Processes are notified at once, so one that needs longer is busy or gone. */
const ACKNOWLEDGED_WITHIN_MS = 2000;
const RESOLVER = "resolver ";

/** Reads the body of a request. `knowsHost` says which names the page shows. Throws a RangeError that names the problem. */
export function parseAction(body: unknown, names: readonly ActionName[], knowsHost: (name: string) => boolean): Action {
  const { action, host, role = "", seconds = 0, reason } = fieldsOf(body);
  const name = names.find(known => known === action);
  if (name === undefined)
    throw new RangeError(`unknown action ${JSON.stringify(action)}; expected ${names.join(", ")}`);
  if (typeof host !== "string" || !knowsHost(host))
    throw new RangeError(`unknown host ${JSON.stringify(host)}: no running process has called it`);
  if (typeof role !== "string" || (role !== "" && !isRole(role)))
    throw new RangeError(`unknown role ${JSON.stringify(role)}; expected ${ROLES.join(", ")}`);
  if ((name === "open" || name === "hold") && !(typeof seconds === "number" && seconds > 0 && seconds <= SECONDS_MAX))
    throw new RangeError(`seconds must be above 0 and at most ${SECONDS_MAX}, not ${JSON.stringify(seconds)}`);
  const text = typeof reason === "string" ? reason.trim() : "";
  if (text === "" || text.length > REASON_CHARS_MAX || /\p{Cc}/u.test(text))
    throw new RangeError(`the reason must be one line of 1 to ${REASON_CHARS_MAX} characters`);
  return {
    name,
    target: targetOf(host, role),
    targetText: role === "" ? host : `${host} (${role})`,
    seconds: Number(seconds),
    reason: text,
  };
}

/** Orders to all processes that share a store (laws S6, B11). */
export class StoreActions implements DashboardActions {
  readonly names = ["open", "close", "half-open", "hold", "release"] as const;
  readonly #operator: Operator;
  readonly #time: Time;

  constructor(operator: Operator, time: Time) {
    this.#operator = operator;
    this.#time = time;
  }

  async run({ name, target, seconds, reason }: Action): Promise<ActionResult> {
    const ordered = { ms: seconds * 1000, reason: operatorReason(reason) };
    const request: OrderRequest =
      name === "open"
        ? { kind: "open", ...ordered, isReplacing: true }
        : name === "hold"
          ? { kind: "hold", ...ordered }
          : { kind: name };
    const { sequence } = await this.#operator.order(target, request);
    if (sequence === undefined)
      return { isApplied: true, text: name === "release" ? "nothing was held" : "no circuit had to change" };
    const acknowledgements = await this.#operator.acknowledgements([sequence], this.#time, ACKNOWLEDGED_WITHIN_MS);
    return resultOf(acknowledgements);
  }
}

/** Orders to the hub of this process. With a shared store they apply to the other processes too. */
export class HubActions implements DashboardActions {
  readonly names = ["open", "close", "half-open", "hold", "release"] as const;
  readonly #hub: Hub;

  constructor(hub: Hub) {
    this.#hub = hub;
  }

  async run({ name, target, seconds, reason }: Action): Promise<ActionResult> {
    const { breakers, limits } = this.#hub;
    const text = targetText(target);
    if (name === "open") breakers.open(text, { seconds, reason, replace: true });
    else if (name === "close") breakers.close(text);
    else if (name === "half-open") breakers.halfOpen(text);
    else if (name === "hold") limits.hold(text, seconds, { reason });
    else limits.release(text);
    return { isApplied: true, text: "applied by this process" };
  }
}

/** The target as `hub.breakers` takes it. */
function targetText(target: BreakerTarget): string {
  if ("resolver" in target) return `resolver:${target.resolver}`;
  const service = serviceOfName(target.unit);
  const unit = service === undefined ? target.unit : `service:${service}`;
  return target.role === undefined ? unit : `${unit}:${target.role}`;
}

function resultOf(acknowledgements: readonly Acknowledgement[]): ActionResult {
  const count = (effect: Acknowledgement["effect"]) =>
    acknowledgements.filter(acknowledgement => acknowledgement.effect === effect).length;
  const total = acknowledgements.length;
  if (total === 0)
    return { isApplied: false, text: "no running process is listed; a process applies it before its next request" };
  const applied = count("applied");
  const shadow = count("shadow");
  const silent = count("silent");
  const parts = [
    `applied by ${applied} of ${total} ${total === 1 ? "process" : "processes"}`,
    ...(shadow > 0 ? [`${shadow} in shadow mode, where it has no effect`] : []),
    ...(silent > 0 ? [`${silent} gave no answer within ${ACKNOWLEDGED_WITHIN_MS / 1000} s`] : []),
  ];
  return { isApplied: applied === total, text: parts.join("; ") };
}

function targetOf(host: string, role: string): BreakerTarget {
  if (host.startsWith(RESOLVER)) return { resolver: host.slice(RESOLVER.length) };
  return { unit: host, role: isRole(role) ? role : undefined };
}

function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new RangeError("the body must be a JSON object");
}
