/** The dashboard in a real browser. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type TestContext, test } from "node:test";
import { createDashboard, dashboardOf } from "../../src/dashboard/dashboard.ts";
import type { SourceState } from "../../src/dashboard/source.ts";
import { openPage } from "../browser-page.ts";
import { hubFor, serve } from "../http/kit.ts";
import { whyNoBrowser } from "../telemetry/chromium.ts";
import { exampleSource } from "./example-source.ts";
import { hostStatus, key } from "./facts.ts";
import { dashboardPage, scriptedHub, serveDashboard } from "./kit.ts";

const skip = whyNoBrowser();

test("a circuit that opens moves its host to the top of the list, with reason and time left, without a reload", {
  skip,
}, async t => {
  let status = 200;
  const server = await serve(t, (_, response) => response.writeHead(status).end());
  const hub = await hubFor(t, {
    retry: false,
    limits: { defaults: { metadata: { rates: "100/SECOND" } } },
    breakers: { defaults: { fail_max: 3, reset_timeout_s: 60 } },
  });
  const { page, trouble } = await dashboardPage(t, hub);
  await page.getByText("No request has been sent yet.").waitFor();
  for (const host of ["127.0.0.1", "localhost"])
    await (await hub.fetch(server.origin.replace("127.0.0.1", host))).text();
  await page.getByRole("button", { name: /^127\.0\.0\.1, circuit closed/ }).waitFor();
  status = 500;
  for (let call = 0; call < 3; call += 1)
    await (await hub.fetch(`${server.origin.replace("127.0.0.1", "localhost")}/${call}`)).text();
  await page
    .getByRole("button", { name: /^localhost, circuit open, circuit open for metadata: failures, \d+ s left/ })
    .waitFor();
  const names = await page.locator(".rows .name").allTextContents();
  assert.deepEqual(names, ["localhost", "127.0.0.1"]);
  assert.equal(await page.locator("#connection").textContent(), "live");
  assert.doesNotMatch(page.url(), /token/);

  await page.getByRole("button", { name: /^localhost/ }).click();
  const panel = page.getByRole("complementary", { name: "Selected host" });
  await panel.getByText("circuit open", { exact: true }).waitFor();
  await panel.getByRole("rowheader", { name: "rates" }).waitFor();
  assert.match((await panel.getByRole("table").textContent()) ?? "", /rates100\/SECONDpolicy\.ratelimits/);
  assert.match((await panel.locator(".events").textContent()) ?? "", /circuit closed → open for 60 s/);
  await page.getByRole("link", { name: "Events" }).click();
  await page.getByText("circuit closed → open for 60 s").waitFor();
  assert.deepEqual(trouble, []);
});

test("in a cooldown the new calls of every role are refused, also if the circuit of one role is open", {
  skip,
}, async t => {
  const circuit = { role: "metadata", state: "open", failures: 0, probes: 0, remainingMs: 90_000 } as const;
  const roles = [{ ...circuit, reason: "failures" } as const];
  const open = { state: "open", reason: "failures", remainingMs: 90_000, roles } as const;
  const keys = [key("a.example"), key("a.example", { role: "landing" })];
  const { hub, set } = scriptedHub({ keys, hosts: [hostStatus("a.example", { ...open, cooldownMs: 60_000 })] });
  const { page } = await dashboardPage(t, hub);
  await page.getByRole("button", { name: /^a\.example/ }).click();
  const newCall = (role: string, text: string) =>
    page
      .locator("section", { hasText: role })
      .locator("div", { hasText: "new call" })
      .getByText(text)
      .first()
      .waitFor();
  await newCall("metadata", "refused: open");
  await newCall("landing", "refused: open");
  set({ hosts: [hostStatus("a.example", open)] });
  await newCall("landing", "now");
  await newCall("metadata", "refused: open");
});

test("a run that begins while the page is open gets a view", { skip }, async t => {
  const source = exampleSource();
  let hasRun = false;
  const read = async () => {
    const state = await source.read();
    return hasRun ? state : { ...state, run: null };
  };
  const dashboard = dashboardOf({ ...source, read }, {});
  t.after(() => dashboard.close());
  const { url } = await serveDashboard(t, dashboard);
  const { page, trouble } = await openPage(t, url);
  await page.getByRole("link", { name: "Hosts" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Run" }).count(), 0);
  hasRun = true;
  await page.getByRole("link", { name: "Run" }).click();
  await page.getByText("run works.csv").waitFor();
  assert.deepEqual(trouble, []);
});

test("texts of servers and operators are shown as text: no markup, no script, no change of direction", {
  skip,
}, async t => {
  const markup = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
  const hostile = `evil\u202e${markup}`;
  const status = hostStatus(hostile, { state: "open", reason: `cli-open:${markup}`, remainingMs: 60_000 });
  const { hub, emit } = scriptedHub({ keys: [key(hostile), key("'\"><b>x</b>")], hosts: [status] });
  const { page, trouble } = await dashboardPage(t, hub);
  emit({ event_type: "cache_trouble", message: markup });
  emit({ event_type: "crawl_delay", host: hostile, seconds: 3 });
  await page.getByText(`evil·${markup}`).first().click();
  await page.getByRole("heading", { name: `evil·${markup}` }).waitFor();
  await page.getByRole("link", { name: "Events" }).click();
  await page.locator(".events li", { hasText: "onerror" }).first().waitFor();
  assert.equal(await page.locator("main img, main script, main b:not(.badge)").count(), 0);
  assert.doesNotMatch(await page.locator("body").innerText(), /\u202e/);
  assert.deepEqual(trouble, []);
});

test("2,000 keys are listed with few elements, and the keyboard reaches the last key", { skip }, async t => {
  const keys = Array.from({ length: 2000 }, (_, index) => key(`host-${String(index).padStart(4, "0")}.example`));
  const { hub, set } = scriptedHub({ keys });
  const { page, trouble } = await dashboardPage(t, hub);
  await page.getByText("2,000 hosts and services, none needs attention").waitFor();
  const rows = page.getByRole("listitem");
  assert.ok((await rows.count()) < 60);
  assert.equal(await rows.first().getAttribute("aria-setsize"), "2000");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.type"), "search");
  await page.getByRole("button", { name: /^host-0000/ }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.match(await page.evaluate("document.activeElement.getAttribute('aria-label')"), /^host-0002/);
  await page.keyboard.press("End");
  assert.match(await page.evaluate("document.activeElement.getAttribute('aria-label')"), /^host-1999/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "host-1999.example" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("complementary").waitFor({ state: "hidden" });
  // One key begins to queue: it is the first row, and the filter finds it.
  const waiting = {
    waiting: 4,
    estimatedWaitMs: 3000,
    constraint: { kind: "window", owner: "", limit: "10/SECOND" },
  } as const;
  set({ keys: [...keys.slice(0, 1999), key("host-1999.example", waiting)] });
  await page.getByText("2,000 hosts and services, 1 needs attention").waitFor();
  await page.getByLabel("Filter hosts").fill("1999");
  await page.getByRole("button", { name: /^host-1999\.example, circuit closed, 4 queued for 10\/SECOND/ }).waitFor();
  assert.equal(await rows.count(), 1);
  assert.deepEqual(trouble, []);
});

test("a server that ends is shown as disconnected, and one that returns as live, with its new state", {
  skip,
}, async t => {
  const { hub, set } = scriptedHub({ keys: [key("first.example")] });
  const token = "a-token-that-stays";
  const { page, port, stop, dashboard } = await dashboardPage(t, hub, { token });
  await page.getByText("first.example").waitFor();
  await page.getByLabel("Filter hosts").fill("example");
  stop();
  await page.getByText("disconnected: trying again").waitFor();
  assert.ok(await page.getByText("first.example").isVisible());
  await dashboard.close();
  set({ keys: [key("second.example")] });
  const again = createDashboard(hub, { token });
  t.after(() => again.close());
  await serveDashboard(t, again, port);
  await page.getByText("second.example").waitFor();
  assert.equal(await page.locator("#connection").textContent(), "live");
  assert.equal(await page.getByText("first.example").count(), 0);
  assert.equal(await page.getByLabel("Filter hosts").inputValue(), "example");
});

test("a page connects again after a proxy has answered for a server that restarts", { skip }, async t => {
  const { hub, set } = scriptedHub({ keys: [key("first.example")] });
  const token = "a-token-that-stays";
  const { page, port, stop } = await dashboardPage(t, hub, { token });
  await page.getByText("first.example").waitFor();
  stop();
  const proxy = createServer((_, response) => response.writeHead(502).end("bad gateway"));
  await once(proxy.listen(port, "127.0.0.1"), "listening");
  await page.getByText("refused: trying again").waitFor();
  proxy.closeAllConnections();
  proxy.close();
  await once(proxy, "close");
  set({ keys: [key("second.example")] });
  const again = createDashboard(hub, { token });
  t.after(() => again.close());
  await serveDashboard(t, again, port);
  await page.getByText("second.example").waitFor();
  assert.equal(await page.locator("#connection").textContent(), "live");
});

test("the buttons of all actions fit into the panel at 380 px, each on one line", { skip }, async t => {
  const order = {
    rates: "1/SECOND",
    remainingMs: 60_000,
    isLooser: false,
    policyRates: "10/SECOND",
    by: "ann",
    reason: "x",
  };
  const { hub } = scriptedHub({ keys: [key("first.example", { order })] });
  const { page } = await dashboardPage(t, hub, { width: 380 });
  await page.getByText("first.example").click();
  await page.getByRole("button", { name: "Reset limit …" }).waitFor();
  const boxes = await Promise.all((await page.locator(".actions button").all()).map(button => button.boundingBox()));
  assert.equal(boxes.length, 6);
  for (const box of boxes) assert.ok(box !== null && box.x + box.width <= 380 && box.height < 45, JSON.stringify(box));
});

test("two browsers at once see the same changes", { skip }, async t => {
  const { hub, set } = scriptedHub();
  const { page, url } = await dashboardPage(t, hub);
  const { page: other } = await openPage(t, url);
  await other.getByText("No request has been sent yet.").waitFor();
  set({ keys: [key("api.example")], inFlight: 7 });
  for (const one of [page, other]) {
    await one.getByText("api.example").waitFor();
    assert.match((await one.locator("#totals").textContent()) ?? "", /in flight7/);
  }
});

for (const isDark of [false, true]) {
  test(`texts have a contrast of 4.5 or more in the ${isDark ? "dark" : "light"} theme, also at 380 px, without scrolling sideways`, {
    skip,
  }, async t => {
    const open = hostStatus("open.example", { state: "open", reason: "failures", remainingMs: 60_000 });
    const trial = hostStatus("trial.example", { state: "half_open", reason: "failures" });
    const { hub, emit } = scriptedHub({ keys: [key("open.example"), key("calm.example")], hosts: [open, trial] });
    const { page, trouble } = await dashboardPage(t, hub, { isDark, width: 380 });
    emit({ event_type: "cache_trouble", message: "locked" });
    emit({ event_type: "ratelimit.cooldown", key: "calm.example", role: "metadata", seconds: 3 });
    await page.getByText("open.example").first().waitFor();
    for (const place of ["#/hosts", "#/hosts/open.example", "#/events", "#/processes"]) {
      await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
      await page.waitForFunction("document.querySelector('main').innerText.length > 20");
      assert.deepEqual(await page.evaluate(LOW_CONTRAST), [], place);
      assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 380, place);
    }
    assert.deepEqual(trouble, []);
  });
}

test("every control and drawing has a name, and the page has a language and one main heading", { skip }, async t => {
  const { hub } = scriptedHub({ keys: [key("a.example"), key("b.example", { role: "artifact" })] });
  const { page } = await dashboardPage(t, hub);
  await page.getByText("a.example").click();
  await page.getByRole("complementary").waitFor();
  const nameless = await page.evaluate<readonly string[]>(
    `[...document.querySelectorAll("button, a, input, select, [role=img], svg[role]")]
      .filter(one => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
      .map(one => one.outerHTML)`,
  );
  assert.deepEqual(nameless, []);
  assert.equal(await page.locator("h1").count(), 1);
  assert.equal(await page.locator("html").getAttribute("lang"), "en");
  assert.equal(await page.locator("th:not([scope])").count(), 0);
});

/** Texts whose contrast with the nearest background is below 4.5 (WCAG AA). */
const LOW_CONTRAST = `(() => {
  const rgb = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const backgroundOf = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const isText = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim() !== "");
    if (!isText || element.checkVisibility?.() === false || element.matches("option, script, noscript *, .skip")) continue;
    const [a, b] = [luminance(rgb(getComputedStyle(element).color)), luminance(backgroundOf(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(element.textContent.trim().slice(0, 40) + " " + ratio.toFixed(2));
  }
  return low;
})()`;

test("reload, back and forward keep the selected host, whatever its name is", { skip }, async t => {
  const names = ["first.example", "%E0%A4%A", "a/../b?x#y"];
  const { hub } = scriptedHub({ keys: names.map(name => key(name)) });
  const { page, trouble } = await dashboardPage(t, hub);
  for (const name of names) {
    const heading = page.getByRole("heading", { name });
    await page.getByText(name, { exact: true }).first().click();
    await heading.waitFor();
    await page.reload();
    await heading.waitFor();
    await page.goBack();
    await heading.waitFor({ state: "hidden" });
    await page.goForward();
    await heading.waitFor();
    await page.goBack();
  }
  assert.deepEqual(trouble, []);
});

/** A page about a state that does not change, apart from the clock. */
async function pageOf(t: TestContext, change: (state: SourceState) => SourceState) {
  const source = exampleSource();
  const state = change(await source.read());
  const dashboard = dashboardOf({ ...source, read: async () => state }, {});
  t.after(() => dashboard.close());
  const { url } = await serveDashboard(t, dashboard);
  return openPage(t, url);
}

test("the time left counts down in the panel of a host that does not change", { skip }, async t => {
  const untilMs = Date.now() + 3_600_000;
  const circuits = [{ role: "metadata", state: "open", failures: null, probes: 0, untilMs }] as const;
  const { page, trouble } = await pageOf(t, state => ({
    ...state,
    run: null,
    hosts: state.hosts.slice(0, 1).map(host => ({ ...host, name: "a.example", circuits })),
  }));
  await page.getByRole("button", { name: /^a\.example/ }).click();
  const left = page.locator(".roles dd", { hasText: "left" }).first();
  const first = await left.innerText();
  assert.match(first, /^open, \d+ (?:h|min) \d+ (?:min|s) left$/);
  await page.locator(".roles dd", { hasText: "left" }).filter({ hasNotText: first }).first().waitFor();
  assert.deepEqual(trouble, []);
});

test("when the panel of a host is closed, the focus returns to the row of the host", { skip }, async t => {
  const names = Array.from({ length: 200 }, (_, index) => `host-${String(index).padStart(3, "0")}.example`);
  const { hub } = scriptedHub({ keys: names.map(name => key(name)) });
  const { page } = await dashboardPage(t, hub);
  await page.keyboard.press("/");
  await page.keyboard.press("Tab");
  const row = page.getByRole("button", { name: /^host-010\.example/ });
  await row.click();
  await page.getByRole("heading", { name: "host-010.example" }).waitFor();
  await page.getByRole("button", { name: "Close the panel" }).click();
  await page.getByRole("heading", { name: "host-010.example" }).waitFor({ state: "hidden" });
  const focused = await page.evaluate("document.activeElement.closest('[data-key]')?.dataset.key");
  assert.equal(focused, "host-010.example");
});

test("the link that skips to the content keeps the view", { skip }, async t => {
  const { page } = await pageOf(t, state => state);
  await page.getByRole("link", { name: "Events" }).click();
  await page.getByRole("searchbox", { name: "Filter events" }).waitFor();
  await page.evaluate("document.querySelector('.skip').click()");
  await page.waitForURL(/#main$/);
  await page.waitForFunction("document.activeElement.id === 'main'");
  await page.getByRole("searchbox", { name: "Filter events" }).waitFor();
});

test("a resolver has actions for its circuit and none for limits", { skip }, async t => {
  const { page } = await pageOf(t, state => ({
    ...state,
    run: null,
    hosts: state.hosts.slice(0, 1).map(host => ({ ...host, name: "resolver core", kind: "resolver", keys: [] })),
  }));
  await page.getByRole("button", { name: /^resolver core/ }).click();
  await page.getByRole("button", { name: "Open …", exact: true }).waitFor();
  assert.deepEqual(await page.locator(".actions button").allTextContents(), ["Open …", "Close …", "Half-open …"]);
});

test("a run that was killed days ago is drawn, with its start and without a wrong duration", { skip }, async t => {
  const startedMs = Date.now() - 5 * 86_400_000;
  const worker = { name: "m:1", startedMs, done: 1, failed: 0, bytes: 0, taken: 0, isAlive: false };
  const points = [{ atMs: startedMs, requests: 1, waitMs: 0, throttles: 0, hits: 0, failures: 0, refused: 0 }];
  const source = exampleSource();
  const about = { ...source.about, kind: "run" as const };
  const { run, ...state } = await source.read();
  assert.ok(run);
  const killed = { ...run, state: "stopped", startedMs, endedMs: null, timeLeftMs: null, workers: [worker] };
  const read = async () => ({ ...state, series: { stepMs: 1000, points }, run: killed });
  const dashboard = dashboardOf({ ...source, about, read }, {});
  t.after(() => dashboard.close());
  const { page, trouble } = await openPage(t, (await serveDashboard(t, dashboard)).url);
  await page.getByText("run works.csv: stopped, started 5 days ago").waitFor();
  const cells = await page
    .getByRole("row", { name: /^m:1 \(gone\)/ })
    .getByRole("cell")
    .allTextContents();
  assert.equal(cells.at(-1), "");
  assert.deepEqual(trouble, []);
});
