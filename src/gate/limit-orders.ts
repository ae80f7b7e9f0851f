import type { BreakerChange } from "../breaker/breaker-change.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { OrderedChange, RoleBudgets } from "../limiter/role-budgets.ts";
import type { Tuner } from "../limiter/tuner.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time, Timer } from "../time/time.ts";
import { unreferenced } from "../time/unreferenced.ts";

export interface LimitOrdersDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly tuner: Tuner;
  readonly peers: Peers | undefined;
  readonly emitter: LimiterEmitter;
}

/** What ended an order whose time is over, for events. */
const TIME_IS_OVER = { reason: "the time of the order is over", by: "", untilUs: 0 } as const;

/** Applies the orders of operators that change rates, and ends those whose time is over. */
export class LimitOrders {
  readonly #deps: LimitOrdersDeps;
  #timer: Timer | undefined;

  constructor(deps: LimitOrdersDeps) {
    this.#deps = deps;
  }

  /** The order concerns the budgets that count the requests of its host or service. */
  apply({ blocker, roles, limit }: BreakerChange & { readonly kind: "limit" }): void {
    const { roleBudgets } = this.#deps;
    this.#changed(
      roles.flatMap(role => roleBudgets.setOrder(blocker.name, role, limit)),
      limit,
    );
  }

  #changed(changes: readonly OrderedChange[], limit: Pick<OrderedLimit, "reason" | "by" | "untilUs">): void {
    const { tuner, peers, emitter, time } = this.#deps;
    const changed = changes.map(({ roleBudget }) => roleBudget);
    // Before a waiting request is served: units that were leased under the former limits are returned.
    peers?.ratesOrdered(changed);
    for (const roleBudget of changed) tuner.limitsChanged(roleBudget);
    const seconds = limit.untilUs === 0 ? 0 : (limit.untilUs - time.monotonicUs()) / 1e6;
    for (const { roleBudget, old } of changes) emitter.ordered(roleBudget, old, { ...limit, seconds });
    this.#arm();
  }

  /** One timer, for the order that ends next. */
  #arm(): void {
    const { roleBudgets, time } = this.#deps;
    this.#timer?.cancel();
    const endUs = roleBudgets.nextOrderEndUs;
    if (endUs === undefined) return;
    this.#timer = unreferenced(time, (endUs - time.monotonicUs()) / 1000, () => {
      // A timer may fire early: then nothing has ended, and it is armed again.
      this.#changed(roleBudgets.endOrders(time.monotonicUs()), TIME_IS_OVER);
    });
  }
}
