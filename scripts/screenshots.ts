/**
 * Writes pictures of every view of the dashboard, light and dark, wide and narrow, to screenshots/ or the given folder,
 * and those that the documents show to docs/images/. The state is made up, so that the pictures show the same every time.
 */
import { once } from "node:events";
import { copyFileSync, mkdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { dashboardOf } from "../src/dashboard/dashboard.ts";
import { exampleSource } from "../test/dashboard/example-source.ts";
import { startBrowser, whyNoBrowser } from "../test/telemetry/chromium.ts";

const VIEWS = {
  hosts: "#/hosts",
  host: "#/hosts/www.meridian-science.example",
  limit: "#/hosts/content.openpapers.example",
  order: "#/hosts/content.openpapers.example",
  events: "#/events",
  processes: "#/processes",
  run: "#/run",
};
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 380, height: 760 } };

/** Few, because the package contains them. */
const DOCUMENTED: ReadonlySet<string> = new Set(["host-wide-light", "hosts-wide-dark", "run-narrow-light"]);
const DOCUMENTS = "docs/images";

const missing = whyNoBrowser();
if (missing !== false) {
  console.error(missing);
  process.exit(1);
}
const folder = resolve(process.argv[2] ?? "screenshots");
for (const each of [folder, DOCUMENTS]) mkdirSync(each, { recursive: true });
const dashboard = dashboardOf(exampleSource(), {});
const server = createServer(dashboard).listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/?token=${dashboard.token}`;
const browser = await startBrowser();
try {
  for (const theme of ["light", "dark"] as const)
    for (const size of ["wide", "narrow"] as const) await shoot(browser, theme, size);
} finally {
  await browser.close();
  await dashboard.close();
  server.closeAllConnections();
  server.close();
}

async function shoot(from: Browser, theme: "light" | "dark", size: "wide" | "narrow"): Promise<void> {
  const page = await from.newPage({ viewport: SIZES[size], colorScheme: theme, reducedMotion: "reduce" });
  await page.goto(url);
  for (const [view, hash] of Object.entries(VIEWS)) {
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator(`#tabs a[aria-current=page][href="${hash.split("/").slice(0, 2).join("/")}"]`).waitFor();
    if (view === "host" || view === "limit")
      await page.getByRole("rowheader", { name: "rates", exact: true }).waitFor();
    // The next frame draws what the address has chosen.
    await page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
    const name = `${view}-${size}-${theme}`;
    const path = join(folder, `dashboard-${name}.png`);
    if (view === "order") await page.getByRole("button", { name: "Set limit …", exact: true }).click();
    await page.screenshot({ path });
    if (view === "order") await page.keyboard.press("Escape");
    if (DOCUMENTED.has(name)) copyFileSync(path, join(DOCUMENTS, `dashboard-${name}.png`));
    console.log(path);
  }
  await page.close();
}
