/**
 * One of several processes on one redis server, for `redis-processes.alone.test.ts`.
 *
 *   tries <url> <limit> <windowMs> <tries>   asks that often, as fast as it can
 *   sends <url> <limit> <windowMs> <ms>      sends for so long, and waits as it is told
 *
 * It reports when it "sent", by the server's clock: after it was given a unit and before it says that it was written.
 */
import { createClient } from "@redis/client";
import { RedisStore } from "../../src/stores/redis-store.ts";
import type { Ask } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";

const [, , task = "", url = "", limit = "1", windowMs = "1000", much = "1"] = process.argv;
const windowUs = Number(windowMs) * 1000;
const windows = [{ limit: Number(limit), windowUs, spanUs: windowUs }];
const ask: Ask = { claims: [{ key: "k", windows, spacingUs: 0 }], least: 1, most: 1 };
const store = await RedisStore.open(url, { timeoutMs: 5000 });
const clock = createClient({ url });
await clock.connect();

/** Starts everybody at the same moment, and by then everything is loaded. */
await new Promise<void>(resolve => {
  process.once("message", () => resolve());
  process.send?.("ready");
});

const sentUs: number[] = [];
async function attempt(): Promise<number> {
  const [answer] = await store.exchange([], [ask]);
  if (answer?.kind !== "given") return answer?.waitMs ?? 0;
  const [seconds, micros] = await clock.sendCommand<[string, string]>(["TIME"]);
  sentUs.push(Number(seconds) * 1_000_000 + Number(micros));
  await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  return 0;
}

if (task === "tries") for (let count = 0; count < Number(much); count += 1) await attempt();
else {
  const endUs = systemTime.monotonicUs() + Number(much) * 1000;
  while (systemTime.monotonicUs() < endUs) await systemTime.sleep(await attempt());
}
const { processes } = store;
await store.close();
clock.destroy();
process.send?.({ sentUs, processes });
process.disconnect();
