/**
 * One of the processes that share a limit: `node worker.ts <options as JSON>`. It sends requests without end, and appends
 * the time of each write to a file at once, so that `kill -9` loses none.
 *
 * Messages from the parent: `{ stallMs }` blocks the event loop, `"stop"` ends the process.
 */
import { subscribe } from "node:diagnostics_channel";
import { openSync, writeSync } from "node:fs";
import { createHub } from "../src/index.ts";
import type { StoreName } from "../src/stores/open-store.ts";
import { systemTime } from "../src/time/system-time.ts";

export interface WorkerOptions {
  readonly store: string;
  readonly origin: string;
  readonly rates: string;
  readonly mode: "wait" | "share";
  /** How many requests this process wants to send at the same time. */
  readonly callers: number;
  readonly stampsFile: string;
}

export type WorkerMessage = "stop" | { readonly stallMs: number };

const options: WorkerOptions = JSON.parse(process.argv[2] ?? "");
const file = openSync(options.stampsFile, "a");
let isStopping = false;

// The machine's clock is the same in all processes. undici publishes this immediately before the write.
subscribe("undici:client:sendHeaders", () => writeSync(file, `write ${systemTime.machineUs()}\n`));

const hub = await createHub({
  env: {},
  cache: false,
  retry: false,
  store: options.store as StoreName,
  whenStoreAway: options.mode,
  policy: {
    ratelimits: {
      extends: "none",
      defaults: { metadata: { rates: options.rates, max_delay_ms: 3_600_000 } },
    },
    // A limit that was exceeded must not silence the processes for a minute: the next faults would show nothing.
    breakers: { extends: "none", advanced: { rolling_window: { enabled: false } } },
  },
});

process.on("message", (message: WorkerMessage) => {
  if (message === "stop") {
    isStopping = true;
    void hub.destroy().then(() => process.exit(0));
    return;
  }
  const untilUs = systemTime.machineUs() + message.stallMs * 1000;
  while (systemTime.machineUs() < untilUs);
});
process.on("disconnect", () => process.exit(0));
process.send?.("ready");
await Promise.all(Array.from({ length: options.callers }, (_, caller) => call(caller)));

async function call(caller: number): Promise<void> {
  for (let n = 0; !isStopping; n += 1) {
    try {
      const response = await hub.fetch(`${options.origin}/${process.pid}/${caller}/${n}`);
      await response.arrayBuffer();
      if (response.status !== 200) writeSync(file, `status ${systemTime.machineUs()} ${response.status}\n`);
    } catch (error) {
      if (isStopping) return;
      const text = String(error).replaceAll("\n", " ");
      writeSync(file, `error ${systemTime.machineUs()} ${text}\n`);
      await systemTime.sleep(50);
    }
  }
}
