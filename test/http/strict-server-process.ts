/** A strict server in its own process, so that a stalled client does not stall it. */
import { startStrictServer } from "../../src/testing/strict-server.ts";

const server = await startStrictServer({ rate: process.argv[2] ?? "" });
process.send?.(server.origin);
process.on("message", () =>
  process.send?.({ arrived: server.arrivalsMs.length, rejected: server.rejected, most: server.busiest }),
);
process.on("disconnect", () => process.exit());
