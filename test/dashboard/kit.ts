/** A dashboard on loopback, and a hub whose state the test decides. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { createDashboard, type Dashboard, type DashboardOptions } from "../../src/dashboard/dashboard.ts";
import type { Hub, HubSnapshot } from "../../src/http/hub.ts";
import type { HubEvent, HubListener } from "../../src/http/hub-options.ts";
import { openPage } from "../browser-page.ts";

export interface ServedDashboard {
  /** With the token. */
  readonly url: string;
  readonly port: number;
  stop(): void;
}

export async function serveDashboard(t: TestContext, dashboard: Dashboard, port = 0): Promise<ServedDashboard> {
  const server = createServer(dashboard).listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  t.after(stop);
  const { port: actual } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${actual}/?token=${dashboard.token}`, port: actual, stop };
}

/** A hub whose state the test decides. */
export function scriptedHub(first: Partial<HubSnapshot> = {}) {
  let listener: HubListener | undefined;
  let snapshot: HubSnapshot = { calls: 0, inFlight: 0, waiting: 0, keys: [], hosts: [], cache: undefined, ...first };
  const hub = {
    listen: (given: HubListener) => {
      listener = given;
      return () => undefined;
    },
    snapshot: () => snapshot,
    explain: () => [],
    breakers: { list: () => [] },
  } as unknown as Hub;
  return {
    hub,
    set: (next: Partial<HubSnapshot>) => {
      snapshot = { ...snapshot, ...next };
    },
    emit: (event: HubEvent) => listener?.(event),
  };
}

export async function dashboardPage(
  t: TestContext,
  hub: Hub,
  options: DashboardOptions & { readonly width?: number; readonly isDark?: boolean } = {},
) {
  const { width, isDark, ...dashboardOptions } = options;
  const dashboard = createDashboard(hub, dashboardOptions);
  t.after(() => dashboard.close());
  const served = await serveDashboard(t, dashboard);
  const opened = await openPage(t, served.url, { ...(width && { width }), ...(isDark && { isDark }) });
  return { ...opened, ...served, dashboard };
}
