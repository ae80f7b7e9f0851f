/**
 * Aborts its only request when a byte arrives on stdin, and does not close its hub: `node aborted-process.ts <store>
 * <url>`. Writes how many timers keep it alive after the abort.
 */
import { createHub, type StoreName } from "../../src/index.ts";

const [store = "memory", url = ""] = process.argv.slice(2);
const policy = { ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "1/MINUTE" } } } } };
const hub = await createHub({ store: store as StoreName, env: {}, policy, retry: false });
const controller = new AbortController();
process.stdin.once("data", () => {
  controller.abort();
  process.stdin.destroy();
});
await hub.fetch(url, { signal: controller.signal }).catch(() => undefined);
setImmediate(() => {
  const timers = process.getActiveResourcesInfo().filter(name => name === "Timeout");
  process.stdout.write(`${timers.length}\n`);
});
