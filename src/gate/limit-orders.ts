import type { BreakerChange } from "../breaker/breaker-change.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { OrderedChange } from "../limiter/ordered-change.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time, Timer } from "../time/time.ts";
import { setUnreferencedTimer } from "../time/unreferenced-timer.ts";
import type { GateQueues } from "./gate-queues.ts";

export interface LimitOrdersDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly peers: Peers | undefined;
  readonly emitter: LimiterEmitter;
  readonly gateQueues: GateQueues;
  /** Serves the requests that are ready. */
  readonly serve: () => void;
  /** As `GateOptions.onLimitsEased`. */
  readonly onLimitsEased: (() => void) | undefined;
}

/** What ended an order whose time is over, for events. */
const TIME_IS_OVER = { reason: "the time of the order is over", by: "", untilUs: 0 } as const;

/** Applies the orders of operators that change limits, and ends those whose time is over. */
export class LimitOrders {
  readonly #deps: LimitOrdersDeps;
  #timer: Timer | undefined;

  constructor(deps: LimitOrdersDeps) {
    this.#deps = deps;
  }

  /** The order concerns the budgets that count the requests of its host or service. */
  apply({ blocker, roles, limit }: BreakerChange & { readonly kind: "limit" }): void {
    const { roleBudgets } = this.#deps;
    this.#change(() => roles.flatMap(part => roleBudgets.setOrder(blocker.name, part, limit)), limit);
  }

  /** All requests are queued again, as at a reload: an order may add a total or free slots. */
  #change(change: () => readonly OrderedChange[], limit: Pick<OrderedLimit, "reason" | "by" | "untilUs">): void {
    const { roleBudgets, peers, emitter, time, gateQueues, serve } = this.#deps;
    let changes: readonly OrderedChange[] = [];
    gateQueues.requeue(() => {
      changes = change();
      // Before a waiting request is served: units that were leased under the former limits are returned.
      peers?.ratesOrdered(changes.flatMap(({ roleBudget }) => roleBudget ?? []));
      if (changes.some(({ part }) => part === "total")) peers?.limitsChanged(roleBudgets.carried.takeTakenOver());
    }, serve);
    const seconds = limit.untilUs === 0 ? 0 : (limit.untilUs - time.monotonicUs()) / 1e6;
    for (const each of changes) emitter.ordered(each, { ...limit, seconds });
    this.#arm();
  }

  /** One timer, for the order that ends next. */
  #arm(): void {
    const { roleBudgets, time } = this.#deps;
    this.#timer?.cancel();
    const endUs = roleBudgets.nextOrderEndUs;
    if (endUs === undefined) return;
    this.#timer = setUnreferencedTimer(time, (endUs - time.monotonicUs()) / 1000, () => {
      // A timer may fire early: then nothing has ended, and it is armed again.
      this.#change(() => roleBudgets.endOrders(time.monotonicUs()), TIME_IS_OVER);
      this.#deps.onLimitsEased?.();
    });
  }
}
