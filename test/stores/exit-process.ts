/** Fetches once through a hub with this store, and does not close it: `node exit-process.ts <store> <url>`. */
import { createHub, type StoreName } from "../../src/index.ts";

const [store = "memory", url = ""] = process.argv.slice(2);
const hub = await createHub({ store: store as StoreName, env: {} });
await (await hub.fetch(url)).text();
// Replies of the store that are on their way may arrive; then nothing but timers can keep the program alive.
setTimeout(() => {
  const timers = process.getActiveResourcesInfo().filter(name => name === "Timeout").length;
  process.stdout.write(`${timers}\n`);
}, 200);
