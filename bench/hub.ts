/** The hub beside bare undici and Node's own fetch, against a server in a process of its own. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    throughput: () => import("./hub/throughput.ts"),
    latency: () => import("./hub/latency.ts"),
    overhead: () => import("./hub/overhead.ts"),
    heap: () => import("./hub/heap.ts"),
    hosts: () => import("./hub/hosts.ts"),
  },
};
