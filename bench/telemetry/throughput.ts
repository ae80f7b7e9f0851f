/** Events that file sinks drop at a steady rate, with their default queues. The disk and other programs matter. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HubEvent } from "../../src/http/hub-options.ts";
import type { TelemetryEvent } from "../../src/telemetry/events.ts";
import type { Sink } from "../../src/telemetry/sink.ts";
import { jsonlSink } from "../../src/telemetry/sinks/jsonl-sink.ts";
import { sqliteSink } from "../../src/telemetry/sinks/sqlite-sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { acquire, at, attempt, call } from "../../test/telemetry/kit.ts";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";

const RATES = [20_000, 50_000, 100_000];
const HOST = "api.example.org";
/** The events of one request. */
const EVENTS: readonly TelemetryEvent[] = [
  acquire(0, HOST, "granted"),
  attempt(0, HOST, { connect_ms: 0.216, first_byte_ms: 12.345, elapsed_ms: 23.456 }),
  at(0, "breaker_success", { host: HOST, role: "metadata", status: 200, state: "closed", fail_counter: 0 }),
  call(0, HOST, { elapsed_ms: 34.567 }),
];
const BODIES = EVENTS.map(({ ts: _, run_id: _run, config_hash: _hash, ...body }) => body as unknown as HubEvent);

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const seconds = isQuick ? 0.2 : 2;
  const folder = mkdtempSync(join(tmpdir(), "docstokg-bench-"));
  const rows: (readonly [string, number, number, number, number])[] = [];
  for (const perSecond of RATES)
    for (const [name, open] of Object.entries({ jsonl: jsonlSink, sqlite: sqliteSink })) {
      const sink = await open(join(folder, `${name}-${perSecond}`));
      rows.push([name, perSecond, perSecond * seconds, ...(await feed(sink, perSecond, seconds))]);
    }
  rmSync(folder, { recursive: true, force: true });
  return {
    tables: [
      {
        title: `events that arrive at a steady rate for ${seconds} s`,
        columns: ["sink", "events/s", "events", "dropped", "cpu us/event"],
        rows,
      },
    ],
    figures: rows
      .filter(([, perSecond]) => perSecond === RATES.at(-1))
      .map(([name, perSecond, , dropped]) => atMost(`${name}: events dropped at ${perSecond} a second`, dropped, 0)),
  };
}

/** Returns the number of dropped events, and the processor time of each event in microseconds. */
async function feed(sink: Sink, perSecond: number, seconds: number): Promise<readonly [number, number]> {
  const telemetry = createTelemetry({ sinks: [sink] });
  const startUs = systemTime.monotonicUs();
  const before = process.cpuUsage();
  const total = perSecond * seconds;
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor(((systemTime.monotonicUs() - startUs) * perSecond) / 1e6));
    for (; sent < due; sent += 1) telemetry.listener(BODIES[sent % BODIES.length] as HubEvent);
    await systemTime.sleep(1);
  }
  await telemetry.flush();
  const { user, system } = process.cpuUsage(before);
  const { [sink.name]: dropped = 0 } = telemetry.dropped;
  await telemetry.close();
  return [dropped, (user + system) / total];
}
