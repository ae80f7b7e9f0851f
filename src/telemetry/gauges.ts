import type { MetricOf } from "./metrics.ts";
import type { GaugeSource } from "./sink.ts";

const FIELDS = { http_in_flight: "inFlight", http_waiting: "waiting" } as const;

/** The present value of a gauge. The snapshot of a hub has every host, so `counts` is read if there is one. */
export function gaugeOf(name: MetricOf<"gauge">, hub: GaugeSource): number {
  return (hub.counts?.() ?? hub.snapshot())[FIELDS[name]];
}
