import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { test } from "node:test";
import { serverOf } from "../../test/http/server-of.ts";
import { acquire } from "../../test/telemetry/kit.ts";
import { serveMetrics } from "./metrics-server.ts";
import { prometheusSink } from "./sinks/prometheus-sink.ts";

const host = "a.example";

test("metrics are served on /metrics only, and only for host names of this machine", async t => {
  const sink = await prometheusSink();
  sink.take(acquire(0, host, "granted"));
  const server = await serveMetrics({ from: sink, port: 0 });
  t.after(() => server.close());
  const ask = (path: string, options: { method?: string; host?: string } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
    const asked = request(`http://127.0.0.1:${server.port}${path}`, {
      method: options.method ?? "GET",
      headers: { host: options.host ?? `127.0.0.1:${server.port}` },
    });
    asked.on("error", reject).on("response", response => {
      let text = "";
      response.setEncoding("utf8").on("data", chunk => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
    });
    asked.end();
    return promise;
  };
  assert.match((await ask("/metrics")).text, /rate_acquired_total\{host="a\.example",role="metadata"\} 1/);
  assert.equal((await ask("/metrics", { host: `localhost:${server.port}` })).status, 200);
  assert.equal((await ask("/")).status, 404);
  assert.equal((await ask("/metrics", { method: "POST" })).status, 405);
  assert.equal((await ask("/metrics", { host: "rebound.example" })).status, 403);
  const second = serveMetrics({ from: sink, port: server.port });
  await assert.rejects(second, { name: "ConfigError", message: /cannot be served on 127\.0\.0\.1:\d+: .*EADDRINUSE/ });
  await assert.rejects(
    serveMetrics({ from: sink, port: 0, host: "0.0.0.0" as "::1" }),
    /host must be 127\.0\.0\.1 or ::1/,
  );
  await assert.rejects(serveMetrics({ from: sink, port: 70_000 }), /port must be a whole number from 0 to 65535/);
});

test("an error while collecting metrics is a 500, and the server continues", async t => {
  let isBroken = true;
  const registry = {
    contentType: "text/plain",
    metrics: async () => {
      if (isBroken) throw new Error("no");
      return "fine 1\n";
    },
  };
  const server = await serveMetrics({ from: { registry }, port: 0 });
  t.after(() => server.close());
  assert.equal((await fetch(server.url)).status, 500);
  isBroken = false;
  assert.equal(await (await fetch(server.url)).text(), "fine 1\n");
});

test("an error of the server after it listens is one warning, and the server continues", async t => {
  const registry = { contentType: "text/plain", metrics: async () => "fine 1\n" };
  const metrics = await serveMetrics({ from: { registry }, port: 0 });
  t.after(() => metrics.close());
  const server = await serverOf(metrics.url);
  const warned = once(process, "warning");
  let warnings = 0;
  const count = () => {
    warnings += 1;
  };
  process.on("warning", count);
  t.after(() => process.off("warning", count));
  // What Node emits if a connection cannot be accepted, for example without a free file descriptor.
  const accept = Object.assign(new Error("accept EMFILE"), { code: "EMFILE", syscall: "accept" });
  for (let error = 0; error < 3; error += 1) server.emit("error", accept);
  const [warning] = await warned;
  assert.equal(warning.name, "DocstokgWarning");
  assert.equal(warning.message, `the metrics server on 127.0.0.1:${metrics.port} has failed: accept EMFILE`);
  assert.equal(await (await fetch(metrics.url)).text(), "fine 1\n");
  assert.equal(warnings, 1);
});
