import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { scriptedHub } from "../../../test/dashboard/kit.ts";
import { serverOf } from "../../../test/http/server-of.ts";
import { createDashboard } from "../../dashboard/dashboard.ts";
import { serveDashboard } from "./dashboard-server.ts";

test("a port that is not free is a system error that names the flag, and another address a usage error", async t => {
  const dashboard = () => createDashboard(scriptedHub().hub);
  const served = await serveDashboard(dashboard(), { port: 0, address: "127.0.0.1" }, { port: "--port" });
  t.after(() => served.close());
  const port = Number(new URL(served.url).port);
  const flags = { port: "--port", address: "--listen" };
  await assert.rejects(serveDashboard(dashboard(), { port, address: "127.0.0.1" }, flags), {
    name: "Error",
    code: "EADDRINUSE",
    syscall: "listen",
    message: /^--port: cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE/,
  });
  // An address for documentation, which no machine has.
  await assert.rejects(serveDashboard(dashboard(), { port: 0, address: "192.0.2.1" }, flags), { name: "ConfigError" });
});

test("an error of the server after it listens is a warning, and the page is served", async t => {
  const served = await serveDashboard(
    createDashboard(scriptedHub().hub),
    { port: 0, address: "127.0.0.1" },
    { port: "--port" },
  );
  t.after(() => served.close());
  const server = await serverOf(served.url);
  const warned = once(process, "warning");
  server.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE", syscall: "accept" }));
  const [warning] = await warned;
  assert.match(warning.message, /^the dashboard server on 127\.0\.0\.1:\d+ has failed: accept EMFILE$/);
  assert.equal((await fetch(served.url)).status, 200);
});
