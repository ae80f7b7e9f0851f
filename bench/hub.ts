/** Compares the hub with bare undici and Node's own fetch. The server runs in its own process. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    throughput: () => import("./hub/throughput.ts"),
    latency: () => import("./hub/latency.ts"),
    overhead: () => import("./hub/overhead.ts"),
    allocation: () => import("./hub/allocation.ts"),
    heap: () => import("./hub/heap.ts"),
    hosts: () => import("./hub/hosts.ts"),
  },
};
