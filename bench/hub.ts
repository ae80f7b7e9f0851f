/** Compares the hub with bare undici and Node's own fetch. The server runs in its own process. */
import type { Bench, BenchPart } from "./kit/bench.ts";

type Compared = Parameters<typeof import("./hub/throughput.ts")["comparing"]>[0];

function comparison(name: Compared): () => Promise<BenchPart> {
  return async () => (await import("./hub/throughput.ts")).comparing(name);
}

export const bench: Bench = {
  parts: {
    request: comparison("request"),
    "request-unheard": comparison("requestUnheard"),
    "request-miss": comparison("requestMiss"),
    "request-hit": comparison("requestHit"),
    fetch: comparison("fetch"),
    "fetch-miss": comparison("fetchMiss"),
    "fetch-hit": comparison("fetchHit"),
    latency: () => import("./hub/latency.ts"),
    overhead: () => import("./hub/overhead.ts"),
    allocation: () => import("./hub/allocation.ts"),
    heap: () => import("./hub/heap.ts"),
    hosts: () => import("./hub/hosts.ts"),
  },
};
