/** The cost of a crawl: bytes that the hub keeps for each host that it called once, with the shipped limits. */
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { atMost } from "../kit/report.ts";
import { hubRequest, sendAll } from "./callers.ts";
import { EventCount } from "./hubs.ts";
import { InstantWire } from "./instant-wire.ts";

const BYTES_PER_HOST_MAX = 200;
/** Requests before the measurement, so that objects that are created once are not counted. */
const FIRST = 1000;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const hosts = isQuick ? 20_000 : 200_000;
  const hub = await createHub({
    env: {},
    cache: false,
    dispatcher: new InstantWire(),
    telemetry: [new EventCount().listener],
  });
  const send = hubRequest(hub, newHosts());
  await sendAll(send, FIRST);
  const { bytes } = await retained<Hub>(async () => {
    await sendAll(send, hosts);
    return hub;
  });
  const keys = hub.snapshot().keys.length;
  await hub.close();
  return {
    tables: [
      {
        title: `${hosts.toLocaleString("en")} hosts with one request each, cache off`,
        notes: ["no network; the windows of a host are kept for an hour"],
        columns: ["", "bytes/host", "hosts kept"],
        rows: [["hub.request", bytes / hosts, keys]],
      },
    ],
    figures: [atMost("a host that was called once, bytes with its name", bytes / hosts, BYTES_PER_HOST_MAX)],
  };
}

/** A new host for each request. */
function newHosts(): () => string {
  let made = 0;
  return () => {
    made += 1;
    return `https://host-${made}.example.org/works`;
  };
}
