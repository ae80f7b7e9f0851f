/** A server of its own process: at most `limit` requests in any `windowMs`, exactly; the rest gets a 429. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const [limit = 0, windowMs = 0] = process.argv.slice(2).map(Number);
const arrivalsMs: number[] = [];
let rejected = 0;

const server = createServer((_, response) => {
  const nowMs = performance.now();
  const recent = arrivalsMs.filter(ms => ms > nowMs - windowMs).length;
  arrivalsMs.push(nowMs);
  if (recent < limit) {
    response.end("ok");
    return;
  }
  rejected += 1;
  response.writeHead(429).end();
});
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.({ arrivalsMs, rejected }));
process.on("disconnect", () => process.exit());
