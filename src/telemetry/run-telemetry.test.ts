import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { serveMetrics } from "./metrics-server.ts";
import { openRunTelemetry } from "./run-telemetry.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";

test("the port of the metrics is free again when the telemetry cannot be made", async () => {
  const from = await prometheusSink();
  const first = await serveMetrics({ from, port: 0 });
  const { port } = first;
  await first.close();
  const options = { program: "test", metricsPort: port, runId: "not valid" };
  await assert.rejects(openRunTelemetry(temporaryFolder("telemetry"), options), /runId must be/);
  const second = await serveMetrics({ from, port });
  await second.close();
});

test("a port of the metrics that is in use is an error before the file is created", async t => {
  const server = await serveMetrics({ from: await prometheusSink(), port: 0 });
  t.after(() => server.close());
  const folder = temporaryFolder("telemetry");
  await assert.rejects(openRunTelemetry(folder, { program: "test", metricsPort: server.port }), /EADDRINUSE/);
  assert.deepEqual(readdirSync(folder), []);
});
