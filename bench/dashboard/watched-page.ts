/** A page of the dashboard in Chromium, and what it costs the browser. */
import type { Browser, CDPSession, Page } from "playwright-core";

export interface PageFigures {
  /** Processor time of the main thread. */
  readonly busyMs: number;
  readonly heapMb: number;
  /** Durations of tasks longer than 50 ms. */
  readonly longTasksMs: readonly number[];
}

/** Notes long tasks, and when the row of a host is drawn for the first time. */
const OBSERVE = `
  window.longTasksMs = [];
  window.seenMs = {};
  new PerformanceObserver(list => longTasksMs.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: "longtask" });
  new MutationObserver(() => {
    for (const row of document.querySelectorAll("[data-key^='probe-']")) seenMs[row.dataset.key] ??= Date.now();
  }).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-key"] });
`;

export class WatchedPage {
  readonly #page: Page;
  readonly #session: CDPSession;

  static async open(browser: Browser, url: string): Promise<WatchedPage> {
    // Tall, so that the rows of all probes are drawn.
    const page = await browser.newPage({ viewport: { width: 1280, height: 2400 } });
    page.setDefaultTimeout(0);
    await page.addInitScript(OBSERVE);
    await page.goto(url);
    await page.locator("[data-key]").first().waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    return new WatchedPage(page, session);
  }

  private constructor(page: Page, session: CDPSession) {
    this.#page = page;
    this.#session = session;
  }

  /** Since the page was opened. */
  async figures(): Promise<PageFigures> {
    const { metrics } = await this.#session.send("Performance.getMetrics");
    const metric = (wanted: string) => metrics.find(({ name }) => name === wanted)?.value ?? Number.NaN;
    return {
      busyMs: metric("TaskDuration") * 1000,
      heapMb: metric("JSHeapUsedSize") / 2 ** 20,
      longTasksMs: await this.#page.evaluate<readonly number[]>("longTasksMs"),
    };
  }

  /** When the rows of probes were drawn for the first time, by the name of the host. */
  seenMs(): Promise<Readonly<Record<string, number>>> {
    return this.#page.evaluate("seenMs");
  }

  async close(): Promise<void> {
    await this.#page.close();
  }
}
