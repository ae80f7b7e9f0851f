import { operatorReason } from "../breaker/cooldowns.ts";
import { ORDER_SECONDS_MAX } from "../breaker/order-seconds.ts";
import { type CircuitRequest, type OrderRequest, type OrderTarget, ordersForAll } from "../breaker/orders.ts";
import { formatRates, parseRates, type Rate } from "../core/limits/rate.ts";
import { isOrderReason, REASON_FORM } from "../core/text/order-reason.ts";
import { redactedText } from "../core/text/redaction.ts";
import type { OpenReason } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { SET_FORCE_HINT } from "../http/hub-limits.ts";
import { circuitOwnersOf } from "../http/hub-target.ts";
import { giveLimitOrder } from "../http/limit-command.ts";
import { type Acknowledgement, type Operator, UnconfirmedOrderError } from "../http/operator.ts";
import { orderEffects } from "../http/order-effects.ts";
import { checkWantedLimits } from "../policy/limit-order-check.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { LIMIT_PARTS, ROLES } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { circuitTargetOf, limitTargetOf, textOfTarget } from "./action-target.ts";
import type { ActionName, ActionResult, DashboardState, HostActionName, RunActionName } from "./dashboard-state.ts";

/** A validated order of the operator for a host, one of its roles, or a resolver. */
export interface HostAction {
  readonly name: HostActionName;
  readonly target: OrderTarget;
  /** How the page names the target: `api.example.org (landing)`. */
  readonly targetText: string;
  /** Only for `open`, `hold` and `set-limit`. */
  readonly seconds: number;
  /** Only for `set-limit`; empty for the others. */
  readonly rates: readonly Rate[];
  /** Only for `set-limit`; undefined if the order does not change it. */
  readonly maxConcurrent: number | undefined;
  /** Only for `set-limit`: the limits replace those of the policy, even if they are looser. */
  readonly isForced: boolean;
  /** One line. */
  readonly reason: string;
  /** `dashboard, ` and the address of the browser. */
  readonly by: string;
}

/** A validated order of the operator for the run. */
export interface RunAction {
  readonly name: RunActionName;
  readonly targetText: string;
  /** Only for `retry`: the reason of the failed works. */
  readonly failure: string;
  /** One line. */
  readonly reason: string;
}

/** The actions that a page may send to its source. */
export interface DashboardActions {
  readonly names: readonly ActionName[];
  run(action: HostAction | RunAction): Promise<ActionResult>;
}

/** The run of this process, as an operator can control it. */
export interface RunControls {
  pause(): void;
  resume(): void;
  /** Adds the works that failed for this reason. Returns their number. */
  retry(failure: string): Promise<number>;
}

/** How long an action waits for the processes. They are notified at once: one that needs longer is busy or gone. */
const ACKNOWLEDGED_WITHIN_MS = 2000;
const HOST_ACTIONS = ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"] as const;
const TIMED: ReadonlySet<ActionName> = new Set(["open", "hold", "set-limit"]);
/** The end of the message that refuses a rate looser than the policy. */
const FORCE_HINT = "choose “Replace the policy” to set it anyway";

type OrderFields = Readonly<Record<string, unknown>>;

/**
 * Reads the body of a request. Throws a RangeError that names the problem.
 * @param shown the state that the page shows: only its hosts and failures are valid
 * @param from the address of the browser
 */
export function parseAction(
  body: unknown,
  names: readonly ActionName[],
  shown: Pick<DashboardState, "hosts" | "run">,
  from: string,
): HostAction | RunAction {
  const fields = fieldsOf(body);
  const name = names.find(known => known === fields["action"]);
  if (name === undefined)
    throw new RangeError(`unknown action ${JSON.stringify(fields["action"])}; expected ${names.join(", ")}`);
  const given = fields["reason"];
  const text = typeof given === "string" ? given.trim() : "";
  if (!isOrderReason(text)) throw new RangeError(`the reason must be ${REASON_FORM}`);
  // The reason is stored, shown on every page and passed to the application.
  const reason = redactedText(text);
  return isRunAction(name)
    ? { name, reason, ...runTargetOf(name, fields, shown) }
    : { name, reason, by: `dashboard, ${from}`, ...hostTargetOf(name, fields, shown), ...limitsIn(name, fields) };
}

function limitsIn(
  name: HostActionName,
  { rates = "", maxConcurrent, force = false }: OrderFields,
): Pick<HostAction, "rates" | "maxConcurrent" | "isForced"> {
  if (name !== "set-limit") return { rates: [], maxConcurrent: undefined, isForced: false };
  if (typeof rates !== "string") throw new RangeError(`rates must be a text, not ${JSON.stringify(rates)}`);
  if (maxConcurrent !== undefined && typeof maxConcurrent !== "number")
    throw new RangeError(`maxConcurrent must be a number, not ${JSON.stringify(maxConcurrent)}`);
  if (typeof force !== "boolean") throw new RangeError(`force must be true or false, not ${JSON.stringify(force)}`);
  const wanted = { rates: rates.trim() === "" ? [] : parseRates(rates.trim()), maxConcurrent };
  checkWantedLimits(wanted);
  return { ...wanted, isForced: force };
}

function hostTargetOf(
  name: HostActionName,
  { host, role = "", seconds = 0 }: OrderFields,
  { hosts }: Pick<DashboardState, "hosts">,
): Pick<HostAction, "target" | "targetText" | "seconds"> {
  if (typeof host !== "string" || !hosts.some(known => known.name === host))
    throw new RangeError(`unknown host ${JSON.stringify(host)}: no running process has called it`);
  const isLimit = name === "set-limit" || name === "reset-limit";
  const roles: readonly string[] = isLimit ? LIMIT_PARTS : ROLES;
  if (typeof role !== "string" || (role !== "" && !roles.includes(role)))
    throw new RangeError(`unknown role ${JSON.stringify(role)}; expected ${roles.join(", ")}`);
  if (TIMED.has(name) && !(typeof seconds === "number" && seconds > 0 && seconds <= ORDER_SECONDS_MAX))
    throw new RangeError(`seconds must be above 0 and at most ${ORDER_SECONDS_MAX}, not ${JSON.stringify(seconds)}`);
  return {
    target: isLimit ? limitTargetOf(host, role) : circuitTargetOf(host, role),
    targetText: role === "" ? host : `${host} (${role})`,
    seconds: TIMED.has(name) ? Number(seconds) : 0,
  };
}

function runTargetOf(
  name: RunActionName,
  { failure = "" }: OrderFields,
  { run }: Pick<DashboardState, "run">,
): Pick<RunAction, "targetText" | "failure"> {
  if (name !== "retry") return { targetText: "the run", failure: "" };
  if (typeof failure !== "string" || !run?.failures.some(({ reason }) => reason === failure))
    throw new RangeError(`no work has failed with ${JSON.stringify(failure)}`);
  return { targetText: `works that failed with ${failure}`, failure };
}

function isRunAction(name: ActionName): name is RunActionName {
  return name === "pause" || name === "resume" || name === "retry";
}

/** Orders to all processes that share a store (laws S6, B11). */
export class StoreActions implements DashboardActions {
  readonly names = HOST_ACTIONS;
  readonly #operator: Operator;
  readonly #policy: LoadedPolicy;
  readonly #time: Time;

  /** @param policy for values that no running process has published */
  constructor(operator: Operator, policy: LoadedPolicy, time: Time) {
    this.#operator = operator;
    this.#policy = policy;
    this.#time = time;
  }

  async run(action: HostAction | RunAction): Promise<ActionResult> {
    if (!("target" in action)) throw new RangeError(`the run cannot be changed from here: ${action.name}`);
    try {
      return await this.#order(action);
    } catch (error) {
      // The order is in the store, so it is logged as an action that was carried out.
      if (error instanceof UnconfirmedOrderError) return { isApplied: false, text: redactedText(error.message) };
      throw error;
    }
  }

  async #order(action: HostAction): Promise<ActionResult> {
    const { name, target, seconds, reason } = action;
    if (name === "set-limit" || name === "reset-limit") return this.#changeLimit(action, name);
    const [running] = await this.#operator.policies();
    const found = circuitOwnersOf(running?.policy ?? this.#policy, target);
    const request = requestOf(name, seconds * 1000, operatorReason(reason));
    const orders = isCircuitRequest(request) ? ordersForAll(found, request) : [{ target: found.target, request }];
    const sequences = (await this.#operator.orderAll(orders)).map(({ sequence }) => sequence);
    const acknowledgements = await this.#operator.acknowledgements(sequences, this.#time, ACKNOWLEDGED_WITHIN_MS);
    return resultOf(orderEffects(name, acknowledgements));
  }

  async #changeLimit(action: HostAction, kind: "set-limit" | "reset-limit"): Promise<ActionResult> {
    const { target, seconds, rates, maxConcurrent, isForced, reason, by } = action;
    if ("resolver" in target) throw new RangeError("a resolver has no rate limits");
    const request =
      kind === "reset-limit"
        ? ({ kind, reason, by } as const)
        : ({ kind, ms: seconds * 1000, rates, maxConcurrent, isForced, reason, by } as const);
    const { kept, looser, acknowledgements } = await giveLimitOrder(this.#operator, target, request, {
      ...{ policy: this.#policy, time: this.#time, timeoutMs: ACKNOWLEDGED_WITHIN_MS, hint: FORCE_HINT },
    });
    const { isApplied, text } = resultOf(acknowledgements);
    const remarks = [
      ...kept.map(({ role, configured }) => `${role} keeps ${configured} of the policy, which is stricter`),
      ...looser.map(({ role, configured }) => `${role} is looser than the policy, which has ${configured}`),
    ];
    return { isApplied, text: [text, ...remarks].join("; ") };
  }
}

function requestOf(
  name: Exclude<HostActionName, "set-limit" | "reset-limit">,
  ms: number,
  reason: OpenReason,
): OrderRequest {
  if (name === "open") return { kind: "open", ms, reason, isReplacing: true };
  return name === "hold" ? { kind: "hold", ms, reason } : { kind: name };
}

function isCircuitRequest(request: OrderRequest): request is CircuitRequest {
  const { kind } = request;
  return kind === "open" || kind === "close" || kind === "half-open";
}

/** Orders to the hub of this process. With a shared store they apply to the other processes too. */
export class HubActions implements DashboardActions {
  readonly names: readonly ActionName[];
  readonly #hub: Hub;
  readonly #controls: RunControls | undefined;

  constructor(hub: Hub, controls?: RunControls) {
    this.#hub = hub;
    this.#controls = controls;
    this.names = controls === undefined ? HOST_ACTIONS : [...HOST_ACTIONS, "pause", "resume", "retry"];
  }

  async run(action: HostAction | RunAction): Promise<ActionResult> {
    if (!("target" in action)) return this.#changeRun(action);
    const { name, target, seconds, reason, by } = action;
    const { breakers, limits } = this.#hub;
    const text = textOfTarget(target);
    if (name === "open") breakers.open(text, { seconds, reason, replace: true });
    else if (name === "close") breakers.close(text);
    else if (name === "half-open") breakers.halfOpen(text);
    else if (name === "hold") limits.hold(text, { seconds, reason });
    else if (name === "release") limits.release(text);
    else if (name === "reset-limit") limits.reset(text, { reason, by });
    else this.#setLimit(action, text);
    return this.#isShadow(name, target) ? SHADOW : APPLIED;
  }

  #setLimit({ rates, maxConcurrent, isForced: force, seconds, reason, by }: HostAction, text: string): void {
    try {
      this.#hub.limits.set(text, formatRates(rates), { seconds, reason, by, maxConcurrent, force });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new RangeError(error.message.replace(SET_FORCE_HINT, FORCE_HINT), { cause: error });
    }
  }

  /** Whether the order has no effect. The limits and the circuits of a host have shadow modes of their own. */
  #isShadow(name: HostActionName, target: OrderTarget): boolean {
    const isLimit = name === "set-limit";
    if ("resolver" in target || (!isLimit && name !== "open" && name !== "half-open")) return false;
    const { unit, role } = target;
    const roles = role === undefined || role === "total" ? ROLES : [role];
    const mode = isLimit ? "mode" : "breaker.mode";
    return roles.every(each =>
      this.#hub.explain(unit, each).some(({ field, value }) => field === mode && value === "shadow"),
    );
  }

  async #changeRun({ name, failure }: RunAction): Promise<ActionResult> {
    if (name === "pause") this.#controls?.pause();
    else if (name === "resume") this.#controls?.resume();
    else {
      const works = (await this.#controls?.retry(failure)) ?? 0;
      return { isApplied: works > 0, text: `${works} ${works === 1 ? "work" : "works"} added to the run` };
    }
    return APPLIED;
  }
}

const SHADOW: ActionResult = { isApplied: false, text: "this process is in shadow mode, where it has no effect" };
const APPLIED: ActionResult = { isApplied: true, text: "applied by this process" };

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

function fieldsOf(body: unknown): OrderFields {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  throw new RangeError("the body must be a JSON object");
}
