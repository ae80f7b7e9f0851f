/** Measures the shared stores: a SQLite file, and Redis compared with rate-limiter-flexible on the same server. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: {
    redis: () => import("./stores/redis.ts"),
    sqlite: () => import("./stores/sqlite.ts"),
    windows: () => import("./stores/windows.ts"),
  },
};
