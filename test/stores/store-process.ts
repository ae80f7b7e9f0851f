/**
 * One of several processes on one store, for `processes.test.ts`.
 *
 *   try <file> <leaseMs> <times>     asks for one of 20 per minute so many times
 *   eat <file> <leaseMs> <ms>        is hungry for so long, at 8 per second
 *   wait <file> <leaseMs> <ms>       wants one of two per second, and reports when it has got it
 *   hold <file> <leaseMs>            takes both of them, and does nothing more until it is killed
 *   hammer <file> <leaseMs>          exchanges until it is killed
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { SqliteStore } from "../../src/stores/sqlite-store.ts";
import type { Ask } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";

const [, , task = "", file = "", leaseMs = "30000", amount = "0"] = process.argv;

/** Starts everybody at the same moment, and by then everything is loaded. */
await new Promise<void>(resolve => {
  process.once("message", () => resolve());
  process.send?.("ready");
});
const delay = monitorEventLoopDelay({ resolution: 2 });
delay.enable();
const troubles: string[] = [];
const store = await SqliteStore.open(file, {
  time: systemTime,
  leaseMs: Number(leaseMs),
  onTrouble: ({ message }) => troubles.push(message),
});
// Loading SQLite is not what is measured.
delay.reset();

function askFor(limit: number, windowUs: number, most: number, least = 1): Ask {
  return { claims: [{ key: "k", windows: [{ limit, windowUs, spanUs: windowUs }], spacingUs: 0 }], least, most };
}

async function given(ask: Ask): Promise<{ readonly units: number; readonly waitMs: number }> {
  const [answer] = await store.exchange([], [ask]);
  if (answer?.kind === "given") return { units: answer.units, waitMs: 0 };
  return { units: 0, waitMs: answer?.waitMs ?? 0 };
}

async function eat(ask: Ask, untilUs: number, most: number): Promise<readonly number[]> {
  const stampsUs: number[] = [];
  while (systemTime.machineUs() < untilUs && stampsUs.length < most) {
    const { units, waitMs } = await given(ask);
    const nowUs = systemTime.machineUs();
    for (let unit = 0; unit < units; unit += 1) stampsUs.push(nowUs);
    if (units > 0) await store.exchange([{ keys: ["k"], written: units, returned: 0 }], []);
    else await systemTime.sleep(Math.min(waitMs, Math.max(0, untilUs - nowUs) / 1000));
  }
  return stampsUs;
}

async function report(stampsUs: readonly number[]): Promise<void> {
  // What remains of the longest sample is the timer's own grain.
  process.send?.({ stampsUs, troubles, stallMs: delay.max / 1e6, processes: store.processes });
  await store.close();
  process.disconnect();
}

const MINUTE = 60_000_000;
const SECOND = 1_000_000;
if (task === "try") {
  const stampsUs: number[] = [];
  for (let attempt = 0; attempt < Number(amount); attempt += 1) {
    const { units } = await given(askFor(20, MINUTE, 1));
    if (units > 0) stampsUs.push(systemTime.machineUs());
    if (units > 0) await store.exchange([{ keys: ["k"], written: units, returned: 0 }], []);
  }
  await report(stampsUs);
} else if (task === "eat") {
  await report(
    await eat(askFor(8, SECOND, 50), systemTime.machineUs() + Number(amount) * 1000, Number.POSITIVE_INFINITY),
  );
} else if (task === "wait") {
  await report(await eat(askFor(2, SECOND, 1), systemTime.machineUs() + Number(amount) * 1000, 1));
} else if (task === "hold") {
  const { units } = await given(askFor(2, SECOND, 2));
  process.send?.({ units, atUs: systemTime.machineUs() });
} else {
  for (let round = 0; ; round += 1) {
    await given(askFor(1_000_000, SECOND, 1));
    await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
    if (round === 100) process.send?.("written");
  }
}
