/**
 * A program that has secrets everywhere: in URLs, headers, bodies, errors of its own sinks and listeners, orders of an
 * operator and file names. Its outputs are the folder of the first argument, stdout and stderr.
 */
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { createHub } from "../../src/http/create-hub.ts";
import { openTelemetryFile } from "../../src/telemetry/reading/telemetry-file.ts";
import { reportOn } from "../../src/telemetry/report/run-report.ts";
import { jsonlSink } from "../../src/telemetry/sinks/jsonl-sink.ts";
import { otelSink } from "../../src/telemetry/sinks/otel-sink.ts";
import { prometheusSink } from "../../src/telemetry/sinks/prometheus-sink.ts";
import { sqliteSink } from "../../src/telemetry/sinks/sqlite-sink.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { SECRETS } from "./secrets.ts";

const [folder = ""] = process.argv.slice(2);
const secret = SECRETS.word;
trace.setGlobalTracerProvider(
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new ConsoleSpanExporter())] }),
);

const server = createServer((request, response) => {
  const { origin } = new URL(`http://127.0.0.1:${port}`);
  response.setHeader("set-cookie", `sid=${secret}`);
  if (request.url?.startsWith("/redirect"))
    response.writeHead(302, { location: `${origin}/target?api_key=${secret}&client_secret=${secret}` }).end();
  else if (request.url?.startsWith("/fail")) response.writeHead(503, { "retry-after": "0" }).end(secret);
  else response.end(secret);
});
await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;

const prometheus = await prometheusSink();
const sinks = [
  await jsonlSink(join(folder, "telemetry.jsonl")),
  await sqliteSink(join(folder, "telemetry.db")),
  prometheus,
  await otelSink(),
  {
    name: "throwing",
    take: () => {
      throw new Error(`POST https://collector.example.org/?api_key=${secret} failed; ${SECRETS.jwt}`);
    },
  },
  { name: "rejecting", take: () => Promise.reject(new Error(`Cookie: a=${secret}; mail ${SECRETS.mail}`)) },
];
const telemetry = createTelemetry({ sinks, runId: "r" });
const hub = await createHub({
  env: {},
  telemetry: [telemetry.listener],
  retry: { baseMs: 1, attempts: 2 },
  // A file in a file: the cache reports that it cannot be opened.
  cache: `sqlite:${join(folder, "telemetry.jsonl", `api_key=${secret}.db`)}`,
  policy: { ratelimits: { extends: "none" }, breakers: { extends: "none", defaults: { fail_max: 2 } } },
});
hub.listen(() => {
  throw Object.assign(new Error(`refresh_token=${secret} X-Amz-Credential=${secret}`), { code: `token=${secret}` });
});
const headers = {
  authorization: `Bearer ${secret}`,
  cookie: `session=${secret}`,
  "x-els-insttoken": secret,
  "x-api-key": SECRETS.random,
};
const query = `?api_key=${secret}&email=${SECRETS.mail}&X-Amz-Signature=${SECRETS.random}&insttoken=${secret}`;
for (const path of ["/plain", "/redirect", "/fail", "/plain"]) {
  const url = `http://127.0.0.1:${port}${path}${query}`;
  await hub.request(url, { headers, maxRedirections: 3, maxWaitMs: 1000 }).then(
    ({ body }) => body.text(),
    () => undefined,
  );
}
await hub.request(`http://127.0.0.1:1/${query}`, { headers }).catch(() => undefined);
const abort = Object.assign(new Error(secret), { code: `api_key=${secret}`, name: `password: ${secret}` });
await hub
  .request(`http://127.0.0.1:${port}/plain${query}`, { signal: AbortSignal.abort(abort) })
  .catch(() => undefined);
telemetry.listener({
  event_type: "breaker_cooldown_set",
  host: "a.example",
  until: 1,
  reason: `cli-open:client_secret=${secret}`,
});
telemetry.listener({
  event_type: "store_away",
  processes: 1,
  mode: "share",
  message: `redis://user:${secret}@host/0 ${SECRETS.jwt}`,
});
telemetry.listener({ event_type: "cache_trouble", message: `${SECRETS.random} is no key of ${SECRETS.mail}` });
await hub.close();
writeFileSync(join(folder, "metrics.txt"), await prometheus.registry.metrics());
await telemetry.close();
for (const file of ["telemetry.jsonl", "telemetry.db"]) {
  const opened = await openTelemetryFile(join(folder, file));
  const report = await reportOn(opened, "r");
  writeFileSync(join(folder, `${file}.html`), report.page());
  writeFileSync(join(folder, `${file}.json`), JSON.stringify(report.summary));
  opened.close();
}
server.closeAllConnections();
server.close();
