/**
 * What telemetry costs a request over a wire that answers at once: a rate that no network reaches. A case ends when its
 * sink has written all events, so that no cost is left out, and its queue is large enough to drop none.
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
import { race, type TimedCase, timingOptions } from "../kit/timing.ts";

const NONE = "no telemetry";
const UNHEARD = "channel without subscribers";
const NO_OP = "a listener that does nothing";
const ORIGIN = "https://api.example.org";
const UNHEARD_TIMES_MAX = 1.02;
const JSONL_TIMES_MAX = 2;
/** More than a sample makes. */
const MAX_QUEUED = 1e7;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  const dispatcher = new InstantWire();
  const url = oneUrl(ORIGIN);
  const caseOf = async (name: string, listeners: Parameters<typeof hubWithWideLimits>[0]["telemetry"]) =>
    new RequestCase(name, hubRequest(await hubWithWideLimits({ dispatcher, cache: false, telemetry: listeners }), url));
  const options = { maxQueued: MAX_QUEUED };
  const sinks: readonly (readonly [string, Sink])[] = [
    [UNHEARD, channelSink()],
    ["jsonl", await jsonlSink(join(folder, "telemetry.jsonl"), options)],
    ["sqlite", await sqliteSink(join(folder, "telemetry.db"), options)],
    ["prometheus", await prometheusSink()],
    ["otel, with no SDK registered", await otelSink()],
  ];
  const telemetries = sinks.map(([name, sink]) => ({ name, telemetry: createTelemetry({ sinks: [sink] }) }));
  const cases: readonly TimedCase[] = [
    await caseOf(NONE, []),
    await caseOf(NO_OP, [new EventCount().listener]),
    ...(await Promise.all(
      telemetries.map(async ({ name, telemetry }): Promise<TimedCase> => {
        const inner = await caseOf(name, [telemetry.listener]);
        return {
          name,
          leastCalls: inner.leastCalls,
          run: async calls => {
            await inner.run(calls);
            await telemetry.flush();
          },
        };
      }),
    )),
  ];
  const result = await race(cases, timingOptions(isQuick));
  for (const { telemetry } of telemetries) await telemetry.close();
  rmSync(folder, { recursive: true, force: true });
  return {
    tables: [
      {
        title: `microseconds for a request over a wire that answers at once, ${CALLERS} callers`,
        notes: ["each request makes five events; the time to write them is included"],
        columns: ["case", "us/request", "added us", `times ${NONE}`, `times ${NO_OP}`],
        rows: cases.map(({ name }) => [
          name,
          result.ns(name) / 1000,
          (result.ns(name) - result.ns(NONE)) / 1000,
          result.ratio(name, NONE),
          result.ratio(name, NO_OP),
        ]),
      },
    ],
    figures: [
      atMost(`no network: ${UNHEARD} / ${NONE}`, result.ratio(UNHEARD, NONE), UNHEARD_TIMES_MAX),
      atMost(`no network: jsonl / ${NO_OP}`, result.ratio("jsonl", NO_OP), JSONL_TIMES_MAX),
    ],
  };
}
