/**
 * Aborts its only request and does not close its hub: `node aborted-process.ts <store> <url>`. Writes for how many
 * milliseconds it ran after the abort.
 */
import { createHub, type StoreName } from "../../src/index.ts";

const [store = "memory", url = ""] = process.argv.slice(2);
const policy = { ratelimits: { hosts: { "127.0.0.1": { metadata: { rates: "1/MINUTE" } } } } };
const hub = await createHub({ store: store as StoreName, env: {}, policy, retry: false });
await hub.fetch(url, { signal: AbortSignal.timeout(300) }).catch(() => undefined);
const abortedMs = performance.now();
process.on("exit", () => process.stdout.write(`${Math.round(performance.now() - abortedMs)}\n`));
