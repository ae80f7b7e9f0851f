/**
 * A process that sends requests at a steady rate over a wire without a network, with a listener that counts events. Its
 * first argument has its settings as JSON. It answers each message of its parent with what it has done so far.
 */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createDashboard } from "../../src/dashboard/dashboard.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { hubWithWideLimits } from "../hub/hubs.ts";
import { InstantWire } from "../hub/instant-wire.ts";

export interface WorkerSettings {
  /** @default none: the process shares nothing */
  readonly store?: StoreName | undefined;
  readonly hosts: readonly string[];
  readonly requestsPerSecond: number;
  readonly hasDashboard?: boolean;
}

export interface WorkerCounts {
  /** The address of its dashboard; empty without one. */
  readonly url: string;
  readonly requests: number;
  readonly events: number;
  readonly cpuMs: number;
}

const STEP_MS = 50;

const settings = JSON.parse(process.argv[2] ?? "{}") as WorkerSettings;
let events = 0;
const countEvent = () => {
  events += 1;
};
const hub = await hubWithWideLimits({
  dispatcher: new InstantWire(),
  cache: false,
  store: settings.store,
  telemetry: [countEvent],
});
let url = "";
if (settings.hasDashboard) {
  const dashboard = createDashboard(hub);
  const server = createServer(dashboard).listen(0, "127.0.0.1");
  await new Promise(resolve => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/?token=${dashboard.token}`;
}
let requests = 0;
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ url, requests, events, cpuMs: (user + system) / 1000 } satisfies WorkerCounts);
});
process.once("disconnect", () => process.exit());

let due = 0;
let at = Math.floor(Math.random() * settings.hosts.length);
for (;;) {
  due += (settings.requestsPerSecond * STEP_MS) / 1000;
  for (; due >= 1; due -= 1) {
    at = (at + 1) % settings.hosts.length;
    void hub.request(`https://${settings.hosts[at]}/works`, { maxWaitMs: 60_000 }).then(async ({ body }) => {
      await body.dump();
      requests += 1;
    });
  }
  await systemTime.sleep(STEP_MS);
}
