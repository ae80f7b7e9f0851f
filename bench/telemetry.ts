/** What listening costs: the hub with each sink, beside the hub that nobody listens to. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    sinks: () => import("./telemetry/sinks.ts"),
  },
};
