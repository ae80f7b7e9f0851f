/**
 * Requests per second with the hub, compared with the same requests without it. Each comparison is a part of its own, so
 * that it runs in its own process: a program has one hub, and V8 makes each call slower where hubs with other options
 * have run the same code.
 */
import { Agent } from "undici";
import type { Hub } from "../../src/http/hub.ts";
import type { BenchOptions, BenchPart, PartReport } from "../kit/bench.ts";
import { atLeast, type BenchTable } from "../kit/report.ts";
import { race } from "../kit/timing.ts";
import { BODY } from "./answer.ts";
import { openBenchServer } from "./bench-server.ts";
import { bareFetch, bareRequest, CALLERS, hubFetch, hubRequest, newUrls, oneUrl, type SendOnce } from "./callers.ts";
import { EventCount, hubWithWideLimits } from "./hubs.ts";
import { RequestCase } from "./request-case.ts";

interface Comparison {
  readonly what: string;
  /** The wanted share of the requests per second of the bare client; undefined without a target. */
  readonly timesMin?: number;
  readonly bare: "request" | "fetch";
  readonly isCaching?: true;
  readonly isUnheard?: true;
  /** Requests that are sent before the measurement, and the measured ones. */
  readonly send: (hub: Hub, origin: string) => { readonly first?: SendOnce; readonly measured: SendOnce };
}

const COMPARISONS = {
  request: {
    what: "hub.request, cache off",
    timesMin: 0.95,
    bare: "request",
    send: (hub, origin) => ({ measured: hubRequest(hub, oneUrl(origin)) }),
  },
  requestUnheard: {
    what: "hub.request, cache off, no listener",
    bare: "request",
    isUnheard: true,
    send: (hub, origin) => ({ measured: hubRequest(hub, oneUrl(origin)) }),
  },
  requestMiss: {
    what: "hub.request, cache miss, stored",
    bare: "request",
    isCaching: true,
    send: (hub, origin) => ({ measured: hubRequest(hub, newUrls(origin), "fwd=miss") }),
  },
  requestHit: {
    what: "hub.request, cache hit",
    timesMin: 3,
    bare: "request",
    isCaching: true,
    send: (hub, origin) => ({
      first: hubRequest(hub, oneUrl(origin), "fwd=miss"),
      measured: hubRequest(hub, oneUrl(origin), "hit"),
    }),
  },
  fetch: {
    what: "hub.fetch, cache off",
    timesMin: 0.95,
    bare: "fetch",
    send: (hub, origin) => ({ measured: hubFetch(hub, oneUrl(origin)) }),
  },
  fetchMiss: {
    what: "hub.fetch, cache miss, stored",
    bare: "fetch",
    isCaching: true,
    send: (hub, origin) => ({ measured: hubFetch(hub, newUrls(origin), "fwd=miss") }),
  },
  fetchHit: {
    what: "hub.fetch, cache hit",
    timesMin: 3,
    bare: "fetch",
    isCaching: true,
    send: (hub, origin) => ({
      first: hubFetch(hub, oneUrl(origin), "fwd=miss"),
      measured: hubFetch(hub, oneUrl(origin), "hit"),
    }),
  },
} as const satisfies Record<string, Comparison>;

export function comparing(name: keyof typeof COMPARISONS): BenchPart {
  return { measure: options => compare(COMPARISONS[name], options) };
}

async function compare(comparison: Comparison, { isQuick }: BenchOptions): Promise<PartReport> {
  const options = isQuick ? { rounds: 3, sampleMs: 40 } : { rounds: 21, sampleMs: 250 };
  const { what, timesMin, isCaching = false, isUnheard = false } = comparison;
  using server = await openBenchServer();
  const events = new EventCount();
  await using hub = await hubWithWideLimits({
    telemetry: isUnheard ? [] : [events.listener],
    ...(isCaching ? {} : { cache: false }),
  });
  await using agent = closing(new Agent());
  const url = oneUrl(server.origin);
  const bare =
    comparison.bare === "request"
      ? new RequestCase("undici.request, an Agent", bareRequest(agent.value, url))
      : new RequestCase("Node's fetch", bareFetch(url));
  const { first, measured } = comparison.send(hub, server.origin);
  await first?.();
  const ours = new RequestCase(what, measured);
  const result = await race([bare, ours], options);
  if (!isUnheard && events.count === 0) throw new Error("no event was emitted");
  const times = result.ratio(bare.name, ours.name);
  const table: BenchTable = {
    title: `requests by ${CALLERS} callers, ${BODY.length} bytes of JSON from another process, limits that do not bind`,
    notes: [
      `limiter and breaker${isUnheard ? "" : ", and a listener that counts"}; the ratios are taken within a round, then their median`,
      "CPU: of the client's process, its collector included; the quieter measure, as others may use the machine too",
    ],
    columns: ["client", "requests/s", "times bare", "CPU us/request", "CPU times bare"],
    rows: [
      [bare.name, 1e9 / result.ns(bare.name), 1, bare.cpuUs(options.rounds), 1],
      [ours.name, 1e9 / result.ns(ours.name), times, ours.cpuUs(options.rounds), ours.cpuRatio(bare, options.rounds)],
    ],
  };
  const figures =
    timesMin === undefined ? [] : [atLeast(`${what} / ${bare.name}, requests per second`, times, timesMin)];
  return { tables: [table], figures };
}

function closing(value: Agent): AsyncDisposable & { readonly value: Agent } {
  return { value, [Symbol.asyncDispose]: () => value.close() };
}
