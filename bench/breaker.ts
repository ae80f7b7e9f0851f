/** Compares the breaker with cockatiel and opossum. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    closed: () => import("./breaker/closed.ts"),
    refusal: () => import("./breaker/refusal.ts"),
    memory: () => import("./breaker/memory.ts"),
  },
};
