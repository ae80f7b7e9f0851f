/** The server that enforces the limit, in its own process: `node strict-server.ts <rates>`. */
import { startStrictServer } from "../src/testing/strict-server.ts";

export interface ServerCounts {
  readonly arrived: number;
  readonly rejected: number;
  readonly busiest: number;
}

const server = await startStrictServer({ rate: process.argv[2] ?? "" });
process.send?.(server.origin);
process.on("message", () => {
  const counts: ServerCounts = {
    arrived: server.arrivalsMs.length,
    rejected: server.rejected,
    busiest: server.busiest,
  };
  process.send?.(counts);
});
process.on("disconnect", () => process.exit());
