/** The HTML report in a real browser. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { TelemetryEvent } from "../../src/telemetry/events.ts";
import { reportPage } from "../../src/telemetry/report/report-page.ts";
import { RunTally } from "../../src/telemetry/summary/run-tally.ts";
import { openPage } from "../browser-page.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { whyNoBrowser } from "./chromium.ts";
import { acquire, at, call, RUN, START_MS } from "./kit.ts";
import { syntheticRun } from "./synthetic-run.ts";

const skip = whyNoBrowser();

function pageOf(events: Iterable<TelemetryEvent>): string {
  const tally = new RunTally(RUN);
  for (const event of events) tally.take(event);
  return reportPage(tally.summary(), tally.timeline(), { unreadable: 0, unknown: 0 });
}

function openReport(t: TestContext, text: string, options: { width?: number; isDark?: boolean } = {}) {
  const file = join(temporaryFolder("telemetry"), "report.html");
  writeFileSync(file, text);
  const url = pathToFileURL(file).href;
  return openPage(t, url, { ...options, mayRequest: requested => requested === url });
}

test("the page shows the figures, a chart for each host on one time axis, and charts with a size", {
  skip,
}, async t => {
  const { page, trouble } = await openReport(t, pageOf(syntheticRun()));
  assert.equal(await page.title(), `Run ${RUN}`);
  assert.equal(await page.locator(".tiles li").count(), 8);
  const hosts = await page.locator(".host h3").allTextContents();
  assert.deepEqual(hosts.toSorted(), [
    "api.crossref.org",
    "api.openalex.org",
    "api.unpaywall.org",
    "europepmc.org",
    "export.arxiv.org",
    "zenodo.org",
  ]);
  const strips = await page.locator(".host svg").evaluateAll(drawings =>
    drawings.map(drawing => {
      const { left, width, height } = drawing.getBoundingClientRect();
      return { left, width, height };
    }),
  );
  assert.equal(strips.length, 6);
  assert.equal(new Set(strips.map(({ left, width }) => `${left} ${width}`)).size, 1);
  assert.ok(strips.every(({ width, height }) => width > 500 && height > 50));
  // The host that was down has a red band for about a quarter of the run.
  const strip = page.locator(".host", { hasText: "europepmc.org" });
  const widths = await strip
    .locator("rect.open")
    .evaluateAll(bands => bands.map(band => band.getBoundingClientRect().width));
  const share = widths.reduce((sum, width) => sum + width, 0) / (strips[0]?.width ?? 1);
  assert.ok(share > 0.2 && share < 0.3, String(share));
  assert.deepEqual(trouble, []);
});

test("every bar has a title, every drawing a name, and every chart a table", {
  skip,
}, async t => {
  const { page } = await openReport(t, pageOf(syntheticRun()));
  const tip = await page.locator("section svg .step title").first().textContent();
  assert.match(tip ?? "", /^22:13:20 UTC, 3\.2 s\n\d+ (answered|from the cache)/);
  const unnamed = await page
    .locator("svg")
    .evaluateAll(drawings => drawings.filter(drawing => !drawing.getAttribute("aria-label")).length);
  assert.equal(unnamed, 0);
  const table = page.locator("details table");
  assert.equal(await table.isVisible(), false);
  await page.getByText("The same as a table").click();
  assert.equal(await table.isVisible(), true);
  assert.equal(await page.locator("table").count(), 4);
  assert.equal(await page.locator("table:not(:has(caption))").count(), 0);
  assert.equal(await page.locator("th:not([scope])").count(), 0);
});

test("the page has a light and a dark theme, with enough contrast in both", { skip }, async t => {
  const text = pageOf(syntheticRun());
  const faces: string[] = [];
  for (const isDark of [false, true]) {
    const { page } = await openReport(t, text, { isDark });
    const colours = await page.evaluate<readonly string[]>(
      `["section", ".note", "h2", "td", ".tiles span"].map((place, index) =>
        getComputedStyle(document.querySelector(place))[index === 0 ? "backgroundColor" : "color"])`,
    );
    const [card = 0, ...inks] = colours.map(lightness);
    const contrast = Math.min(...inks.map(ink => (Math.max(ink, card) + 0.05) / (Math.min(ink, card) + 0.05)));
    assert.ok(contrast >= 4.5, `contrast ${contrast}`);
    faces.push(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor"));
  }
  assert.notEqual(faces[0], faces[1]);
});

test("on a phone the page is not wider than the screen", { skip }, async t => {
  const { page } = await openReport(t, pageOf(syntheticRun()), { width: 375 });
  assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 375);
});

test("host names with markup are shown as text and have no effect", { skip }, async t => {
  const evil = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</title><svg onload=alert(3)>",
    "'onmouseover='alert(4)",
    "</style><script>alert(5)</script>",
    "https://evil.example/%00",
    "\u202egro.elpmaxe",
  ];
  const events: TelemetryEvent[] = evil.flatMap((name, index) => [
    at(index, "run_started", { program: name, version: name }),
    call(index, name, { rate_delay_ms: 5, error: name, role: name as "metadata" }),
    acquire(index, name, "refused"),
    at(index, "breaker_cooldown_set", { host: name, until: START_MS + 50, reason: `cli-open:${name}` }),
    {
      ...at(index, "breaker_state_change", {
        host: name,
        role: name as "metadata",
        old: "closed",
        new: "open",
        reset_timeout_s: 1,
        last_rate_delay_ms: 0,
      }),
      config_hash: name,
    },
  ]);
  const { page, trouble } = await openReport(t, pageOf(events));
  const shown = await page.locator(".host h3").allTextContents();
  for (const name of evil.slice(0, 6)) assert.ok(shown.includes(name), `${name}\n${shown.join("\n")}`);
  assert.ok(shown.includes("·gro.elpmaxe"));
  await page.locator(".host").first().hover();
  assert.equal(await page.locator("script, img, [onload], [onerror], [onmouseover]").count(), 0);
  assert.deepEqual(trouble, []);
});

test("100,000 events of 500 hosts make a page of a few megabytes that opens", {
  skip,
}, async t => {
  function* many() {
    for (let i = 0; i < 100_000; i += 1) yield call(i * 40, `host-${i % 500}.example`, { rate_delay_ms: i % 700 });
  }
  const text = pageOf(many());
  assert.ok(text.length < 4_000_000, `${text.length}`);
  const { page, trouble } = await openReport(t, text);
  assert.match((await page.locator(".tiles b").first().textContent()) ?? "", /^100,000$/);
  assert.deepEqual(trouble, []);
});

test("a run without calls has a page", { skip }, async t => {
  const { page, trouble } = await openReport(t, pageOf([at(0, "run_started", { program: "idle", version: "1" })]));
  assert.match((await page.locator("h1").textContent()) ?? "", /^idle for 0 ms$/);
  assert.match((await page.locator(".warn").textContent()) ?? "", /This run has no end event/);
  assert.deepEqual(trouble, []);
});

/** The relative luminance (WCAG) of a colour in the form rgb(…). */
function lightness(colour: string): number {
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(part => {
    const share = Number(part) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
