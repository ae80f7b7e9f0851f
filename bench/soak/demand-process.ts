/**
 * Requests units without end: `node demand-process.ts <store> <limit per second> <ms>`. Reports the time of each unit.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LeaseRequest } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { openPatientStore } from "../../test/stores/patient-store.ts";

export interface DemandReport {
  readonly stampsUs: readonly number[];
  readonly stallMs: number;
}

const SECOND_US = 1_000_000;
const [address = "", limit = "", ms = ""] = process.argv.slice(2);
const store = await openPatientStore(address, { time: systemTime });
const windows = [{ limit: Number(limit), windowUs: SECOND_US, spanUs: SECOND_US }];
const ask: LeaseRequest = { claims: [{ key: "k", windows, spacingUs: 0 }], least: 1, most: 1 };
await new Promise<void>(resolve => {
  process.once("message", () => resolve());
  process.send?.("ready");
});
const delay = monitorEventLoopDelay({ resolution: 2 });
delay.enable();
const stampsUs: number[] = [];
const untilUs = systemTime.machineUs() + Number(ms) * 1000;
while (systemTime.machineUs() < untilUs) {
  const [answer] = await store.exchange([], [ask]);
  if (answer?.kind === "granted") {
    stampsUs.push(systemTime.machineUs());
    await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  } else await systemTime.sleep(answer?.waitMs ?? 0);
}
const report: DemandReport = { stampsUs, stallMs: delay.max / 1e6 };
process.send?.(report);
await store.close();
process.disconnect();
