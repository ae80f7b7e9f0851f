import { retained } from "../kit/heap.ts";
import type { Client } from "./client.ts";

export interface HostsReport {
  readonly met: number;
  readonly tookMs: number;
  /** Growth of the heap per host, after a garbage collection. */
  readonly bytesPerHost: number;
}

const CALLERS = 64;
const MOST_MS = 30_000;
const MOST_BYTES = 1.5e9;
/** Requests before the measurement, so that objects that are created once are not counted. */
const FIRST = 200;

/** Sends one request to each host, until time or memory is used up. */
export async function callHosts(client: Client, hosts: number): Promise<HostsReport> {
  await callEach(client, "first", FIRST);
  let tookMs = 0;
  let met = 0;
  const { bytes } = await retained(async () => {
    const startMs = performance.now();
    met = await callEach(client, "host", hosts);
    tookMs = performance.now() - startMs;
  });
  return { met, tookMs, bytesPerHost: bytes / met };
}

async function callEach(client: Client, name: string, hosts: number): Promise<number> {
  const untilMs = performance.now() + MOST_MS;
  let begun = 0;
  let met = 0;
  let isOver = false;
  const caller = async () => {
    while (!isOver && begun < hosts) {
      begun += 1;
      if ((await client.get(`https://${name}-${begun}.example.org/works`, "metadata")) === 200) met += 1;
      isOver ||= performance.now() > untilMs || (met % 1000 === 0 && process.memoryUsage.rss() > MOST_BYTES);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return met;
}
