import type { Window } from "../core/limits/window-log.ts";
import type { Constraint, LearnedFrom, OrderedRate } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { Budget } from "./budget.ts";
import type { WaitEstimate } from "./estimate.ts";
import { isLooserThanBase } from "./ordered-policies.ts";
import type { RoleBudget } from "./role-budget.ts";

/** One window of a key. */
export interface WindowSnapshot {
  /** The rate as the policy writes it, `10/SECOND`; for another unit than requests with its name, `credits 100000/DAY`. */
  readonly rate: string;
  /** What the window counts: `requests`, or a unit of `costs`. */
  readonly unit: string;
  /** Units used in the window that ends now. */
  readonly used: number;
  /** Units that any such window may use. */
  readonly limit: number;
  /** True if the server announced this limit and the policy would allow more. */
  readonly isLearned: boolean;
}

/** An operator holds a key, or a host whose requests the key counts: none of these requests is sent. */
export interface HoldSnapshot {
  /** The host or service that is held: the key itself, its service, or one host of a service. */
  readonly target: string;
  /** The reason that the operator has given. */
  readonly reason: string;
  /** Milliseconds until it ends. */
  readonly remainingMs: number;
}

/** An operator has changed the limits of a key or total (`hub.limits.set`). */
export interface LimitOrderSnapshot extends OrderedRate {
  /** Milliseconds until it ends. */
  readonly remainingMs: number;
  /** True if it allows more than the policy in any window or in slots, which needs `force`. */
  readonly isLooser: boolean;
  /** The rates of the policy, which apply again when it ends: `10/SECOND+5000/HOUR`; empty if there are none. */
  readonly policyRates: string;
  /** The concurrency limit of the policy, if the order changes it; absent if there is none. */
  readonly policyMaxConcurrent?: number;
}

/** An operator has changed the total of a host or service. */
export interface TotalOrderSnapshot extends LimitOrderSnapshot {
  /** The host or `service <name>`. */
  readonly owner: string;
}

/** The state of one key: a host or service, and a role. */
export interface KeySnapshot {
  /** Name of the host, or `service <name>`. */
  readonly key: string;
  /** The role whose budget this is. */
  readonly role: Role;
  /** The windows in force: those of the policy or of an operator's order, and tighter ones that the server announced. */
  readonly windows: readonly WindowSnapshot[];
  /**
   * Measured pace: units per second in the shortest window in force, up to now. Undefined for a key without rates, whose
   * requests are not logged.
   */
  readonly unitsPerSecond: number | undefined;
  /** Requests granted so far, without HEAD requests that used no units. */
  readonly acquired: number;
  /** Requests refused so far, by windows, cooldowns or slots. */
  readonly refused: number;
  /** HEAD requests granted so far that used no units (`count_head: false`). */
  readonly headSkipped: number;
  /** Grants that hold slots: granted and not released. */
  readonly inFlight: number;
  /** The concurrency limit in force; Infinity if there is none. */
  readonly maxConcurrent: number;
  /** Requests queued for this key. */
  readonly waiting: number;
  /** Milliseconds until every window that applies has capacity for one unit; 0 if all have. Ignores queue and slots. */
  readonly nextFreeMs: number;
  /**
   * Estimate of how many milliseconds a new request would wait behind the queue, or for an open circuit or a cooldown; 0
   * if it would not wait. Slots are ignored.
   */
  readonly estimatedWaitMs: number;
  /** The limit that a new request would wait for; undefined if it could start now. */
  readonly constraint: Constraint | undefined;
  /** The order of an operator that holds requests of the key; undefined if none are held. */
  readonly hold: HoldSnapshot | undefined;
  /** The order of an operator that has changed the limits of the key; undefined if there is none. */
  readonly order: LimitOrderSnapshot | undefined;
  /** The same for the nearest total that the requests of the key count in. */
  readonly totalOrder: TotalOrderSnapshot | undefined;
  /** What announced the last limit that the key has learned; undefined if it has learned none. */
  readonly learnedFrom: LearnedFrom | undefined;
  /** Pace learned by AIMD: windows are stretched to T / multiplier. From `aimd.min_multiplier` to 1; 1 is full pace. */
  readonly multiplier: number;
  /** Milliseconds by which every window is widened; at least the policy's `guard_ms`. */
  readonly guardMs: number;
  /** `smooth` if sends are spaced evenly, `burst` if a window may be used at once. */
  readonly shape: "burst" | "smooth";
}

/**
 * `estimate` is that of a new request for this budget; undefined if it could start now. `blocked`: requests that wait for
 * an open circuit, a cooldown or a hold.
 */
export function keySnapshotOf(
  roleBudget: RoleBudget,
  estimate: WaitEstimate | undefined,
  nowUs: number,
  blocked = 0,
  hold?: HoldSnapshot,
): KeySnapshot {
  const { name: key, role, policy, configured, pace, log, acquired, refused, headSkipped, inFlight } = roleBudget;
  return {
    key,
    role,
    windows: [
      ...roleBudget.windows.map((window, index) => ({
        rate: policy.labels[index] ?? "",
        unit: "requests",
        used: log.usedUnits(index, window, nowUs),
        limit: window.limit,
        isLearned: policy.rates[index] !== configured.rates[index],
      })),
      ...roleBudget.costLogs.flatMap(({ unit, labels, windows, log: ofUnit }) =>
        windows.map((window, index) => ({
          rate: labels[index] ?? "",
          unit,
          used: ofUnit.usedUnits(index, window, nowUs),
          limit: window.limit,
          isLearned: false,
        })),
      ),
    ],
    unitsPerSecond: unitsPerSecondOf(roleBudget, nowUs),
    acquired,
    refused,
    headSkipped,
    inFlight,
    maxConcurrent: policy.maxConcurrent,
    waiting: roleBudget.waiting + blocked,
    nextFreeMs: Math.ceil((roleBudget.freeUs(roleBudget.usualCharge, nowUs) - nowUs) / 1000),
    estimatedWaitMs: Math.ceil(((estimate?.readyUs ?? nowUs) - nowUs) / 1000),
    constraint: estimate?.constraint,
    hold,
    order: orderSnapshotOf(roleBudget, nowUs),
    totalOrder: totalOrderOf(roleBudget, nowUs),
    learnedFrom: roleBudget.learnedFrom,
    multiplier: pace?.multiplier ?? 1,
    guardMs: (pace?.guardUs ?? policy.guardUs) / 1000,
    shape: roleBudget.spacingUs > 0 ? "smooth" : "burst",
  };
}

function orderSnapshotOf({ order, policy }: Budget, nowUs: number): LimitOrderSnapshot | undefined {
  const { orders = [], base } = policy.ordered ?? {};
  if (order === undefined || base === undefined) return undefined;
  const endUs = Math.min(...orders.map(({ untilUs }) => untilUs));
  return {
    ...order,
    remainingMs: Math.max(0, Math.ceil((endUs - nowUs) / 1000)),
    isLooser: isLooserThanBase(policy),
    policyRates: base.labels.join("+"),
    ...(order.maxConcurrent !== undefined &&
      Number.isFinite(base.maxConcurrent) && { policyMaxConcurrent: base.maxConcurrent }),
  };
}

function totalOrderOf({ orderedTotal: total }: RoleBudget, nowUs: number): TotalOrderSnapshot | undefined {
  const order = total && orderSnapshotOf(total, nowUs);
  return order && { ...order, owner: total.name };
}

function unitsPerSecondOf({ policy, windows, log }: RoleBudget, nowUs: number): number | undefined {
  const lengths = policy.rates.map(({ windowUs }) => windowUs);
  if (lengths.length === 0) return undefined;
  const windowUs = Math.min(...lengths);
  const index = lengths.indexOf(windowUs);
  // Without guard and pace, which only delay requests.
  const window = { ...(windows[index] as Window), spanUs: windowUs };
  return (log.usedUnits(index, window, nowUs) * 1e6) / windowUs;
}
