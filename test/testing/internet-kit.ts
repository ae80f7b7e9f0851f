import type { TestContext } from "node:test";
import { makeWire } from "../../src/http/wire/wire.ts";
import { type Internet, type InternetOptions, startInternet } from "../../src/testing/internet/start-internet.ts";

/** A simulated internet that is closed after the test. */
export async function internetFor(t: TestContext, options: InternetOptions = {}): Promise<Internet> {
  const internet = await startInternet({ works: 32, ...options });
  t.after(() => internet.close());
  return internet;
}

/** A client without rate limits, retries and redirects. */
export function unlimitedClient(t: TestContext, { network }: Internet) {
  const wire = makeWire({ allowPrivate: false, ...network });
  t.after(() => wire.destroy());
  return async (
    url: string,
    init: { method?: "GET" | "HEAD" | "POST"; headers?: Record<string, string>; body?: string } = {},
  ) => {
    const { origin, pathname, search } = new URL(url);
    const { statusCode, headers, body } = await wire.request({
      origin,
      path: `${pathname}${search}`,
      method: "GET",
      ...init,
    });
    return { status: statusCode, headers, bytes: Buffer.from(await body.arrayBuffer()) };
  };
}
