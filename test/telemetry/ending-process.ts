/** Takes events and ends in the way that the second argument names, without closing the telemetry. */
import { jsonlSink } from "../../src/telemetry/sinks/jsonl-sink.ts";
import { sqliteSink } from "../../src/telemetry/sinks/sqlite-sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const [file = "", ending, count = "1000"] = process.argv.slice(2);
// A batch that is being written when a signal ends the process may be lost; queued events are not.
const delayMs = ending === "signal" || ending === "full disk at a signal" ? 60_000 : 0;
const sink = await (file.endsWith(".db") ? sqliteSink(file, { delayMs: 60_000 }) : jsonlSink(file, { delayMs }));
const telemetry = createTelemetry({ sinks: [sink], runId: "r" });
const take = () => {
  for (let i = 0; i < Number(count); i += 1)
    telemetry.listener({ event_type: "rate_head_skipped", host: `host-${i}.example`, role: "metadata" });
};

switch (ending) {
  case "exit":
    take();
    process.exit(3);
    break;
  case "throw":
    take();
    throw new Error("not caught");
  case "reject":
    take();
    await Promise.reject(new Error("not handled"));
    break;
  case "signal":
    take();
    process.kill(process.pid, "SIGTERM");
    break;
  case "handled signal":
    process.on("SIGTERM", () => {
      telemetry.close().then(() => process.exit(4));
    });
    take();
    process.kill(process.pid, "SIGTERM");
    break;
  // The shell limits the size of files, so that a write ends in the middle of a line.
  case "full disk":
    process.on("warning", () => undefined);
    take();
    await telemetry.flush();
    process.stdout.write(JSON.stringify(telemetry.dropped));
    process.exit();
    break;
  case "full disk at a signal":
    process.on("warning", () => undefined);
    process.on("SIGTERM", () => {
      process.stdout.write(JSON.stringify(telemetry.dropped));
      process.exit();
    });
    take();
    process.kill(process.pid, "SIGTERM");
    break;
  default:
    throw new Error(`unknown ending ${ending}`);
}
// A signal arrives in a later turn.
await new Promise(resolve => setTimeout(resolve, 60_000));
