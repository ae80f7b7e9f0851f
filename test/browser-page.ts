/** Pages of one real browser, which all tests of a file share. */
import { after, type TestContext } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "./telemetry/chromium.ts";

let started: Promise<Browser> | undefined;
after(async () => (await started)?.close());

export interface OpenedPage {
  readonly page: Page;
  /** Requests to other places, errors, messages of the console and dialogs: a correct page causes none. */
  readonly trouble: string[];
}

export interface OpenPageOptions {
  /** Width of the window in pixels. @default 1280 */
  readonly width?: number;
  /** Whether the browser asks for the dark theme. @default false */
  readonly isDark?: boolean;
  /** Whether the page may request this URL. @default every URL of its origin */
  readonly mayRequest?: (url: string) => boolean;
}

export async function openPage(t: TestContext, url: string, options: OpenPageOptions = {}): Promise<OpenedPage> {
  started ??= startBrowser();
  const page = await (await started).newPage({
    viewport: { width: options.width ?? 1280, height: 800 },
    colorScheme: options.isDark ? "dark" : "light",
  });
  t.after(() => page.close());
  const trouble: string[] = [];
  const { origin } = new URL(url);
  const { mayRequest = requested => requested.startsWith(`${origin}/`) } = options;
  page.on("request", request => {
    if (!mayRequest(request.url())) trouble.push(request.url());
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
