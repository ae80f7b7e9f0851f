/**
 * The server of a scenario, in its own process: `server.ts <rule as JSON>`. Sends its port, and a report on request.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RaceLimitEnforcer, type ServerRule } from "./limit-enforcer.ts";
import { roleOfPath, WARM_PATH } from "./paths.ts";

const rule = JSON.parse(process.argv[2] ?? "{}") as ServerRule;
const enforcer = new RaceLimitEnforcer(rule);
/** Accepts all requests, with the same work for each. */
const warming = new RaceLimitEnforcer({ limits: { metadata: [{ limit: Number.MAX_SAFE_INTEGER, windowMs: 1000 }] } });

const server = createServer((request, response) => {
  const nowMs = performance.now();
  const { url = "/" } = request;
  const judge = url === WARM_PATH ? warming : enforcer;
  const { status, headers } = judge.arrive(nowMs, roleOfPath(url));
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(status === 200 ? '{"status":"ok"}\n' : '{"status":"error"}\n');
});
server.keepAliveTimeout = 120_000;
server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
process.on("message", () => process.send?.(enforcer.report()));
process.once("disconnect", () => process.exit());
