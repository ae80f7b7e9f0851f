import assert from "node:assert/strict";
import { parseRetryAfterMs } from "../../src/core/breaker/retry-after.ts";
import { formatContentRange, parseContentRange, parseRange, resolveRange } from "../../src/core/cache/byte-range.ts";
import { requestControl, responseControl } from "../../src/core/cache/cache-control.ts";
import { freshnessLifetimeMs } from "../../src/core/cache/freshness.ts";
import { varyKeyOf, varyNames } from "../../src/core/cache/vary.ts";
import { announcedLimits } from "../../src/core/limits/ratelimit-fields.ts";
import { parseHttpDate } from "../../src/core/text/http-date.ts";
import { robotsFor } from "../../src/core/text/robots.ts";
import { linksIn } from "../../src/harvest/resolvers/link-header.ts";
import type { FuzzTarget } from "../target.ts";

const NOW_MS = Date.parse("2026-11-16T12:00:00Z");
const DATE = "Mon, 16 Nov 2026 12:00:00 GMT";

export const headerTargets: readonly FuzzTarget[] = [
  {
    name: "retry-after",
    seeds: ["120", DATE, "Monday, 16-Nov-26 12:00:00 GMT", "Mon Nov 16 12:00:00 2026", "1.5, 30"],
    words: ["Mon, ", " GMT", "16 Nov 2026", "12:00:60", ",", ".", "+00:00"],
    run: input => {
      const lines = input.toString().split("\n");
      const ms = parseRetryAfterMs(lines, { responseDate: lines[1], wallMs: NOW_MS });
      if (ms !== undefined) assert(Number.isSafeInteger(ms) && ms > 0, `${ms} ms`);
      const dateMs = parseHttpDate(lines[0] ?? "", NOW_MS);
      if (dateMs !== undefined) assert.equal(parseHttpDate(new Date(dateMs).toUTCString(), NOW_MS), dateMs);
    },
  },
  {
    name: "ratelimit-fields",
    seeds: [
      `ratelimit-policy: "burst";q=100;w=60\nratelimit: "burst";r=50;t=30`,
      "ratelimit: limit=100, remaining=50, reset=5",
      `ratelimit-limit: 100, 100;w=60\nratelimit-remaining: 5\nratelimit-reset: 10\ndate: ${DATE}`,
      "x-ratelimit-limit: 10\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1794830400",
      "x-rate-limit-limit: 10\nx-rate-limit-interval: 1s\nx-concurrency-limit: 3",
    ],
    words: [
      ";w=",
      ";q=",
      ";r=",
      ";t=",
      ";qu=",
      '"',
      "?1",
      ":AA==:",
      "@1",
      "1s",
      "1m",
      "\nratelimit: ",
      "x-ratelimitremaining: ",
    ],
    run: input => {
      const fields = fieldsOf(input.toString());
      for (const { source, name, ...numbers } of announcedLimits(field => fields.get(field), NOW_MS)) {
        assert(/^[ -~]*$/.test(`${source}${name ?? ""}`), "the name is printable ASCII");
        const { limit, windowUs, remaining, resetMs, concurrency } = numbers;
        assert(
          limit !== undefined || remaining !== undefined || concurrency !== undefined,
          "the announcement is empty",
        );
        assert(windowUs === undefined || limit !== undefined, "a window without a limit");
        for (const [value, low, high] of [
          [limit, 1, 1e9],
          [remaining, 0, 1e9],
          [concurrency, 1, 1e9],
          [windowUs, 1, 31 * 86_400e6],
          [resetMs, 0, 31 * 86_400e3],
        ] as const)
          assert(value === undefined || (Number.isFinite(value) && value >= low && value <= high), String(value));
      }
    },
  },
  {
    name: "cache-fields",
    seeds: [
      `cache-control: max-age=60, private="set-cookie", stale-if-error=5\nexpires: ${DATE}\nvary: Accept, accept-encoding`,
      "pragma: no-cache\nrange: bytes=0-10\ncontent-range: bytes 0-10/20",
    ],
    words: [
      "max-age=",
      "s-maxage=",
      "no-cache",
      "no-store",
      "stale-while-revalidate=",
      '"',
      "\\",
      ",",
      "bytes=",
      "bytes ",
      "*",
    ],
    run: input => {
      const fields = fieldsOf(input.toString());
      const field = (name: string) => fields.get(name);
      requestControl(field("cache-control"), field("pragma"));
      const control = responseControl(field("cache-control"));
      const headers = Object.fromEntries(fields);
      const lifetimeMs = freshnessLifetimeMs({ status: 200, headers, responseControl: control, receivedMs: NOW_MS });
      assert(lifetimeMs >= 0, `a lifetime of ${lifetimeMs} ms`);
      const names = varyNames(field("vary"));
      assert.equal(varyKeyOf(names, field), varyKeyOf(varyNames(names), field));
      const part = parseContentRange(field("content-range"));
      if (part !== undefined) assert.deepEqual(parseContentRange(formatContentRange(part)), part);
      const range = parseRange(field("range"));
      const bytes = range && resolveRange(range, 1000);
      if (bytes !== undefined) assert(bytes.start >= 0 && bytes.start < bytes.end && bytes.end <= 1000, "inside");
    },
  },
  {
    name: "link-header",
    seeds: [`<https://example.org/a>; rel="next"; title*=UTF-8''a, <b>; rel=item`],
    words: ["<", ">", ";", "rel=", '"', "\\", ",", "type="],
    run: input => {
      for (const { parameters } of linksIn(input.toString())) assert(parameters !== undefined);
    },
  },
  {
    name: "robots",
    seeds: ["User-agent: *\nDisallow: /a\nAllow: /a/b$\nCrawl-delay: 2\n\nUser-agent: docstokg\nDisallow: /*.pdf"],
    words: ["User-agent: ", "Disallow: ", "Allow: ", "Crawl-delay: ", "*", "$", "#", "\r", "docstokg"],
    run: input => {
      const { crawlDelayS, allows } = robotsFor("docstokg", 200, input.toString());
      allows("/a/b.pdf?c");
      if (crawlDelayS !== undefined) assert(Number.isFinite(crawlDelayS) && crawlDelayS > 0, String(crawlDelayS));
    },
  },
];

/** Lines of `name: value`; the last one of a name counts. */
function fieldsOf(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split("\n").flatMap(line => {
      const colon = line.indexOf(":");
      return colon < 0 ? [] : [[line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]];
    }),
  );
}
