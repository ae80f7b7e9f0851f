/** A real browser for the tests of HTML pages. */
import { type Browser, chromium } from "playwright-core";
import { CHROMIUM, pathOf, whyMissing } from "../tools.ts";

/** No network access, and no desktop needed. */
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** False, or the reason for which tests that need a browser are skipped. */
export function whyNoBrowser(): string | false {
  return whyMissing(CHROMIUM);
}

/** One browser for all tests of a file; it is closed after the last one. */
export async function startBrowser(): Promise<Browser> {
  const path = pathOf(CHROMIUM);
  if (path === undefined) throw new Error("chromium is missing: skip the tests that need it");
  return chromium.launch({ executablePath: path, args: ARGS, timeout: 0 });
}
