/**
 * One of several processes on one store, for `processes.test.ts`: `node store-process.ts <task> <store> [lease in ms]`.
 *
 *   try      opens the store at the start message, and requests one unit of 20 per hour 60 times
 *   send     sends 10 units at 8 per 300 ms
 *   one      sends one unit at 2 per 200 ms
 *   hold     leases both of these units, and keeps them until it is killed
 *   hammer   exchanges until it is killed
 *   open     opens the store of each message, and closes it, until it is killed
 *
 * A unit is stamped after it was leased and before the write is reported to the store.
 */
import { createClient } from "@redis/client";
import type { LeaseRequest, Store } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { openPatientStore } from "./patient-store.ts";

export interface StoreProcessReport {
  readonly stampsUs: readonly number[];
  readonly troubles: readonly string[];
  /** The most processes that the store has counted. */
  readonly processes: number;
}

const HOUR_MS = 3_600_000;
const [task = "", address = "", leaseMs = "30000"] = process.argv.slice(2);
const troubles: string[] = [];
const stampsUs: number[] = [];
let processes = 0;

const store = task === "try" || task === "open" ? undefined : await opened();
/** The windows of a redis server run by its own clock. */
const redis = address.startsWith("redis:") ? await createClient({ url: address }).connect() : undefined;
if (task === "open") {
  process.on("message", async (store: string) => {
    await (await opened(store)).close();
    process.send?.(troubles);
  });
  process.send?.("ready");
} else {
  await new Promise<void>(resolve => {
    process.once("message", () => resolve());
    process.send?.("ready");
  });
  await run(store ?? (await opened()));
}

function opened(store = address): Promise<Store> {
  const onTrouble = ({ message }: Error) => void troubles.push(message);
  return openPatientStore(store, { time: systemTime, leaseMs: Number(leaseMs), onTrouble });
}

async function run(store: Store): Promise<void> {
  if (task === "hold") {
    const beforeUs = systemTime.machineUs();
    const { units } = await leased(store, requestFor(2, 200, 2));
    process.send?.({ units, beforeUs });
    return;
  }
  if (task === "hammer") {
    for (let round = 0; ; round += 1) {
      await sent(store, requestFor(1_000_000, 1000, 1));
      if (round === 100) process.send?.("written");
    }
  }
  if (task === "try") for (let attempt = 0; attempt < 60; attempt += 1) await sent(store, requestFor(20, HOUR_MS, 1));
  if (task === "send") await sendUnits(store, 10, requestFor(8, 300, 50));
  if (task === "one") await sendUnits(store, 1, requestFor(2, 200, 1));
  const report: StoreProcessReport = { stampsUs, troubles, processes };
  process.send?.(report);
  await store.close();
  redis?.destroy();
  process.disconnect();
}

async function sendUnits(store: Store, count: number, request: LeaseRequest): Promise<void> {
  while (stampsUs.length < count) await systemTime.sleep(await sent(store, request));
}

/** How long to wait before the next unit can be leased. */
async function sent(store: Store, request: LeaseRequest): Promise<number> {
  const { units, waitMs } = await leased(store, request);
  if (units === 0) return waitMs;
  const stampUs = await nowUs();
  for (let unit = 0; unit < units; unit += 1) stampsUs.push(stampUs);
  await store.exchange([{ keys: ["k"], written: units, returned: 0 }], []);
  return 0;
}

async function leased(
  store: Store,
  request: LeaseRequest,
): Promise<{ readonly units: number; readonly waitMs: number }> {
  const [reply] = await store.exchange([], [request]);
  processes = Math.max(processes, store.processes);
  if (reply?.kind === "granted") return { units: reply.units, waitMs: 0 };
  return { units: 0, waitMs: reply?.waitMs ?? 0 };
}

async function nowUs(): Promise<number> {
  if (redis === undefined) return systemTime.machineUs();
  const [seconds, micros] = await redis.sendCommand<[string, string]>(["TIME"]);
  return Number(seconds) * 1_000_000 + Number(micros);
}

function requestFor(limit: number, windowMs: number, most: number): LeaseRequest {
  const windowUs = windowMs * 1000;
  const windows = [{ limit, windowUs, spanUs: windowUs }];
  return { claims: [{ key: "k", windows, spacingUs: 0 }], least: 1, most };
}
