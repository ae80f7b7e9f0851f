/** Circuits that open, and how long it takes until the page shows them. */

import { MockAgent } from "undici";
import { createHub } from "../../src/http/create-hub.ts";
import type { StoreName } from "../../src/stores/open-store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import type { WatchedPage } from "./watched-page.ts";

/** Not a divisor of the second in which the page is refreshed, so that probes fall on every part of it. */
const INTERVAL_MS = 370;
const LAST_WAIT_MS = 5000;

/** The delays of the circuits that the page has drawn, in ms. */
export async function drawnAfterMs(page: WatchedPage, store: StoreName, probes: number): Promise<readonly number[]> {
  const dispatcher = new MockAgent();
  dispatcher.disableNetConnect();
  const hub = await createHub({
    env: {},
    store,
    cache: false,
    dispatcher,
    retry: false,
    policy: { breakers: { extends: "none", defaults: { fail_max: 1, reset_timeout_s: 600 } } },
  });
  const openedMs = new Map<string, number>();
  for (let probe = 0; probe < probes; probe += 1) {
    const host = `probe-${probe}.example.org`;
    dispatcher.get(`https://${host}`).intercept({ path: "/" }).reply(500, "");
    const { body } = await hub.request(`https://${host}/`);
    openedMs.set(host, systemTime.wallMs());
    await body.dump();
    await systemTime.sleep(INTERVAL_MS);
  }
  await systemTime.sleep(LAST_WAIT_MS);
  const seen = await page.seenMs();
  await hub.close();
  return [...openedMs].flatMap(([host, ms]) => (seen[host] === undefined ? [] : [seen[host] - ms]));
}
