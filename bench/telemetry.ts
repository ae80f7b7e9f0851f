/** The cost of telemetry: the hub with each sink, compared with a hub without listeners. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    sinks: () => import("./telemetry/sinks.ts"),
  },
};
