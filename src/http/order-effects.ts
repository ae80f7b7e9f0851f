import type { OrderRequest } from "../breaker/orders.ts";
import type { Acknowledgement } from "./operator.ts";

/**
 * The effect of an order in each process. A circuit in shadow mode refuses nothing, so orders to open or half-open it have
 * no effect there. All other orders apply in shadow mode too.
 */
export function orderEffects(
  kind: OrderRequest["kind"],
  acknowledgements: readonly Acknowledgement[],
): readonly Acknowledgement[] {
  if (kind === "open" || kind === "half-open") return acknowledgements;
  return acknowledgements.map(each => (each.effect === "shadow" ? { ...each, effect: "applied" } : each));
}
