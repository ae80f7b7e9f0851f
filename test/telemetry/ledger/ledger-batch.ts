import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { context, trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Random } from "../../../sim/random.ts";
import { createHub } from "../../../src/http/create-hub.ts";
import type { Hub } from "../../../src/http/hub.ts";
import type { TelemetryEvent } from "../../../src/telemetry/events.ts";
import { otelSink } from "../../../src/telemetry/sinks/otel-sink.ts";
import { prometheusSink } from "../../../src/telemetry/sinks/prometheus-sink.ts";
import { sqliteSink } from "../../../src/telemetry/sinks/sqlite-sink.ts";
import { createTelemetry } from "../../../src/telemetry/telemetry.ts";
import { FakeTime } from "../../../src/testing/fake-time.ts";
import { StorageContextManager } from "../context-manager.ts";
import { CallerLedger } from "./ledger-calls.ts";
import { ledgerProblems } from "./ledger-comparison.ts";
import type { Ledger } from "./ledger-records.ts";
import { DEAD_HOST, drawScript, HOSTS, type ScriptStep } from "./ledger-script.ts";
import { LedgerServer } from "./ledger-server.ts";

/** Scripts that run at the same time, through one hub. */
const PARALLEL = 20;
/** Turns of the event loop without any change, after which only time can end a wait. */
const IDLE_TURNS = 12;

/** What was compared, for the output of the command. */
export interface LedgerTotals {
  scripts: number;
  calls: number;
  attempts: number;
  events: number;
}

/** Runs scripts through one hub with every sink, and compares all records of their calls. Throws an error with the seed when they differ. */
export async function runLedgerBatch(seed: number, scripts: number, totals: LedgerTotals): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-ledger-"));
  const server = new LedgerServer();
  const port = await server.listen();
  const spans = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  context.setGlobalContextManager(new StorageContextManager());
  const random = new Random(seed);
  const time = new FakeTime();
  const events: TelemetryEvent[] = [];
  const prometheus = await prometheusSink();
  const file = join(folder, "telemetry.db");
  const sinks = [
    { name: "kept", take: (event: TelemetryEvent) => void events.push(event) },
    await sqliteSink(file, { maxQueued: 1e7, delayMs: 10_000 }),
    prometheus,
    await otelSink(),
  ];
  const telemetry = createTelemetry({ sinks, runId: "ledger", time, sampleBeforeCall: 0 });
  const hub = await hubOf(time, random, port, telemetry.listener);
  const agents = hub.agents();
  const caller = new CallerLedger(agents.http, host => (host === DEAD_HOST ? 1 : port));
  const world = { hub, server, time, events };
  try {
    for (let first = 0; first < scripts; first += PARALLEL) {
      const count = Math.min(PARALLEL, scripts - first);
      const drawn = Array.from({ length: count }, (_, index) => drawScript(random, `${first + index}`));
      await runScripts(world, caller, drawn);
    }
    await settled(world);
    const snapshot = hub.snapshot();
    await hub.close();
    await telemetry.close();
    const metrics = await prometheus.registry.metrics();
    const seen = server.seen;
    const ledger: Ledger = { caller, seen, events, metrics, spans: spans.getFinishedSpans(), file, snapshot };
    const problems = await ledgerProblems(ledger);
    if (problems.length > 0) throw new Error(`ledger of seed ${seed} with ${scripts} scripts:\n${problems.join("\n")}`);
    totals.scripts += scripts;
    totals.calls += [...caller.calls.values()].reduce((sum, calls) => sum + calls, 0);
    totals.attempts += server.seen.length;
    totals.events += events.length;
  } finally {
    await hub.destroy();
    agents.http.destroy();
    server.close();
    trace.disable();
    context.disable();
    rmSync(folder, { recursive: true, force: true });
  }
}

function hubOf(time: FakeTime, random: Random, port: number, listener: ReturnType<typeof createTelemetry>["listener"]) {
  const limit = { rates: "20/SECOND", guard_ms: 0, max_delay_ms: 500, max_concurrent: 6 };
  return createHub({
    env: {},
    time,
    random: () => random.next(),
    telemetry: [listener],
    retry: { attempts: 3, baseMs: 100 },
    network: {
      // Nothing listens on port 1.
      connectTo: [...HOSTS.map(host => `${host}:80:127.0.0.1:${port}`), `${DEAD_HOST}:80:127.0.0.1:1`],
    },
    policy: {
      ratelimits: { extends: "none", defaults: { metadata: limit, landing: limit, artifact: limit } },
      breakers: {
        extends: "none",
        defaults: { fail_max: 6, reset_timeout_s: 20, half_open: { jitter_ms: 100 } },
        advanced: { rolling_window: { enabled: true, window_s: 10, threshold_failures: 12, cooldown_s: 15 } },
      },
    },
  });
}

/** The parts of a running batch. */
interface World {
  readonly hub: Hub;
  readonly server: LedgerServer;
  readonly time: FakeTime;
  readonly events: readonly TelemetryEvent[];
}

async function runScripts(
  world: World,
  caller: CallerLedger,
  scripts: readonly (readonly ScriptStep[])[],
): Promise<void> {
  let running = scripts.length;
  const run = async (script: readonly ScriptStep[]) => {
    for (const step of script) await caller.take(world.hub, world.server, step);
    running -= 1;
  };
  const all = Promise.all(scripts.map(run));
  await advanceWhile(() => running > 0, world);
  await all;
}

/** Waits for refreshes and bodies that outlive their calls. */
function settled(world: World): Promise<void> {
  return advanceWhile(() => {
    const { calls, inFlight, waiting } = world.hub.snapshot();
    return calls + inFlight + waiting > 0;
  }, world);
}

/** Moves time to the next timer whenever the network has nothing left to do. */
async function advanceWhile(isBusy: () => boolean, { server, time, events }: World): Promise<void> {
  let idleTurns = 0;
  let before = 0;
  for (let turn = 0; isBusy(); turn += 1) {
    if (turn > 1e6) throw new Error("the scripts do not end");
    await nextTurn();
    const now = events.length + server.seen.length + server.ended;
    idleTurns = now === before ? idleTurns + 1 : 0;
    before = now;
    if (idleTurns < IDLE_TURNS) continue;
    idleTurns = 0;
    const { nextTimerMs } = time;
    if (nextTimerMs !== undefined) await time.advance(nextTimerMs);
  }
}
