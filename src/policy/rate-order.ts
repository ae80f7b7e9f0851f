import type { Rate } from "../core/limits/rate.ts";

/** True when every sequence of sends that keeps `strict` also keeps `loose`. */
export function implies(strict: Rate, loose: Rate): boolean {
  return strict.limit * Math.ceil(loose.windowUs / strict.windowUs) <= loose.limit;
}

/** The rates without those that another one implies; of two that imply each other the first stays. */
export function bindingRates(rates: readonly Rate[]): readonly Rate[] {
  return rates.filter(
    (rate, index) =>
      !rates.some((other, at) => at !== index && implies(other, rate) && (at < index || !implies(rate, other))),
  );
}
