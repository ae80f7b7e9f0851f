/** The cost of telemetry: the hub with each sink, compared with a hub without listeners, and how fast files are written. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    sinks: () => import("./telemetry/sinks.ts"),
    unheard: () => import("./telemetry/unheard.ts"),
    throughput: () => import("./telemetry/throughput.ts"),
  },
};
