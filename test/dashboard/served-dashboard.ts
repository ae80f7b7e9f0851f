import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { createDashboard, type Dashboard, type DashboardOptions } from "../../src/dashboard/dashboard.ts";
import { hubFor } from "../http/kit.ts";

/** Serves the handler on loopback until the test ends, and returns its origin. */
export async function listen(t: TestContext, handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A hub with a limit, and its dashboard on loopback. */
export async function dashboardFor(t: TestContext, options: DashboardOptions = {}) {
  const hub = await hubFor(t, { limits: { defaults: { metadata: { rates: "10/SECOND" } } } });
  const dashboard = createDashboard(hub, options);
  t.after(() => dashboard.close());
  return { hub, dashboard, origin: await listen(t, dashboard) };
}

export function withToken({ token = "" }: Dashboard, origin: string, path: string): string {
  return `${origin}${path}${path.includes("?") ? "&" : "?"}token=${token}`;
}

/** The messages of a stream, one after the other. */
export async function openStream(t: TestContext, url: string) {
  const aborted = new AbortController();
  const response = await fetch(url, { signal: aborted.signal });
  const reader = (response.body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader();
  t.after(() => aborted.abort());
  let text = "";
  const next = async (): Promise<{ event: string; data: unknown }> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const message = text.slice(0, end);
        text = text.slice(end + 2);
        // A comment keeps the connection open.
        if (message.startsWith(":")) continue;
        const [, event = "", data = ""] = /^event: (\w+)\ndata: (.*)$/s.exec(message) ?? [];
        return { event, data: JSON.parse(data) };
      }
      const { value, done } = await reader.read();
      if (done) throw new Error("the stream has ended");
      text += value;
    }
  };
  return { response, next, close: () => aborted.abort() };
}
