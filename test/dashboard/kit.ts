/** A dashboard on loopback, and pages of a real browser that look at it. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, type TestContext } from "node:test";
import type { Browser, Page } from "playwright-core";
import { createDashboard, type Dashboard, type DashboardOptions } from "../../src/dashboard/dashboard.ts";
import type { Hub, HubSnapshot } from "../../src/http/hub.ts";
import type { HubEvent, HubListener } from "../../src/http/hub-options.ts";
import { startBrowser } from "../telemetry/chromium.ts";

let started: Promise<Browser> | undefined;
after(async () => (await started)?.close());

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

export interface OpenedPage {
  readonly page: Page;
  /** Requests to other servers, errors, messages of the console and dialogs. */
  readonly trouble: string[];
}

export async function openPage(
  t: TestContext,
  url: string,
  options: { readonly width?: number; readonly isDark?: boolean } = {},
): Promise<OpenedPage> {
  started ??= startBrowser();
  const page = await (await started).newPage({
    viewport: { width: options.width ?? 1280, height: 800 },
    colorScheme: options.isDark ? "dark" : "light",
  });
  t.after(() => page.close());
  const trouble: string[] = [];
  const { origin } = new URL(url);
  page.on("request", request => {
    if (!request.url().startsWith(`${origin}/`)) trouble.push(request.url());
  });
  page.on("console", message => trouble.push(message.text()));
  page.on("pageerror", error => trouble.push(error.message));
  page.on("dialog", dialog => {
    trouble.push(dialog.message());
    void dialog.dismiss();
  });
  // A busy machine may need longer than Playwright's 30 s; the runner ends a test that hangs.
  page.setDefaultTimeout(0);
  await page.goto(url);
  return { page, trouble };
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
