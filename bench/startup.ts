/** CPU time until a program runs that imports docstokg, against Node alone. Needs `npm run build`. */
import type { Bench } from "./kit/bench.ts";

export const bench: Bench = {
  parts: { cpu: () => import("./startup/cpu.ts") },
};
