/**
 * Requests over a dispatcher that responds at once, with four events each. No network is that fast, so queues overflow.
 * Dropped events cost almost nothing, so the table also shows the share of dropped events.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sink } from "../../src/telemetry/sink.ts";
import { channelSink } from "../../src/telemetry/sinks/channel-sink.ts";
import { jsonlSink } from "../../src/telemetry/sinks/jsonl-sink.ts";
import { otelSink } from "../../src/telemetry/sinks/otel-sink.ts";
import { prometheusSink } from "../../src/telemetry/sinks/prometheus-sink.ts";
import { sqliteSink } from "../../src/telemetry/sinks/sqlite-sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { CALLERS, hubRequest, oneUrl } from "../hub/callers.ts";
import { EventCount, hubWithWideLimits } from "../hub/hubs.ts";
import { InstantWire } from "../hub/instant-wire.ts";
import { RequestCase } from "../hub/request-case.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { race, timingOptions } from "../kit/timing.ts";

const QUIET = "no listener";
const BARE = "a listener that counts";
const ORIGIN = "https://api.example.org";
/** Relative to a request without a network; with a round trip of a millisecond it is a few per cent. */
const TIMES_MAX = 2;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  const dispatcher = new InstantWire();
  const sinks: readonly Sink[] = [
    channelSink(),
    await prometheusSink(),
    await otelSink(),
    await jsonlSink(join(folder, "telemetry.jsonl")),
    await sqliteSink(join(folder, "telemetry.db")),
  ];
  const url = oneUrl(ORIGIN);
  const send = async (listeners: Parameters<typeof hubWithWideLimits>[0]["telemetry"]) =>
    hubRequest(await hubWithWideLimits({ dispatcher, cache: false, telemetry: listeners }), url);
  const all = sinks.map(sink => ({ sink, telemetry: createTelemetry({ sinks: [sink] }), events: new EventCount() }));
  const entrants = [
    new RequestCase(QUIET, await send([])),
    new RequestCase(BARE, await send([new EventCount().listener])),
    ...(await Promise.all(
      all.map(
        async ({ sink, telemetry, events }) =>
          new RequestCase(sink.name, await send([telemetry.listener, events.listener])),
      ),
    )),
  ];
  const result = await race(entrants, timingOptions(isQuick));
  const dropped = (name: string) => {
    const found = all.find(({ sink }) => sink.name === name);
    return found === undefined ? 0 : (found.sink.dropped ?? 0) / Math.max(1, found.events.count);
  };
  for (const { telemetry } of all) await telemetry.close();
  rmSync(folder, { recursive: true, force: true });
  return {
    tables: [
      {
        title: `microseconds for a request over a dispatcher that responds at once, ${CALLERS} callers`,
        notes: ["channel: with no subscriber; otel: with no SDK registered"],
        columns: ["contestant", "us/request", "added us", "ratio to no listener", "dropped %"],
        rows: entrants.map(({ name }) => [
          name,
          result.ns(name) / 1000,
          (result.ns(name) - result.ns(QUIET)) / 1000,
          result.ratio(name, QUIET),
          dropped(name) * 100,
        ]),
      },
    ],
    figures: sinks.map(({ name }) =>
      atMost(`no network: hub with ${name} / ${QUIET}`, result.ratio(name, QUIET), TIMES_MAX),
    ),
  };
}
