import assert from "node:assert/strict";
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
