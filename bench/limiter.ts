/** Compares the limiter with rate-limiter-flexible, limiter, p-throttle, p-queue and bottleneck. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    decide: () => import("./limiter/decide.ts"),
    refusal: () => import("./limiter/refusal.ts"),
    memory: () => import("./limiter/memory.ts"),
    saturation: () => import("./limiter/saturation.ts"),
  },
};
