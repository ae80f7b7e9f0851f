/** An invented state in which every part of the page has content, for pictures and measurements. */
import type { EventRow, SeriesPoint } from "../../src/dashboard/dashboard-state.ts";
import { EventLog } from "../../src/dashboard/event-log.ts";
import { type BreakerFacts, hostStates } from "../../src/dashboard/host-states.ts";
import type { DashboardSource, SourceState } from "../../src/dashboard/source.ts";
import type { KeySnapshot } from "../../src/limiter/key-snapshot.ts";
import { explainTarget } from "../../src/policy/explanation.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import { isRole } from "../../src/policy/roles.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { key } from "./facts.ts";

const policy = await loadPolicy({ env: {} });
const MINUTE_MS = 60_000;

export function exampleSource(): DashboardSource {
  return {
    about: { kind: "hub", name: "harvest.js, pid 4217", hasEvents: true, hasOutcomes: true },
    actions: {
      names: ["open", "close", "half-open", "hold", "release", "set-limit", "reset-limit"],
      run: async () => ({ isApplied: true, text: "applied by 3 of 3 processes" }),
    },
    log: new EventLog(),
    // Made up again each time, so that the charts reach to the present.
    read: async () => exampleState(systemTime.wallMs()),
    explain: (name, role) => explainTarget(policy, name, isRole(role) ? role : "metadata"),
    setWatched: () => undefined,
    close: async () => undefined,
  };
}

function exampleState(nowMs: number): SourceState {
  return {
    totals: { calls: 118, inFlight: 23, waiting: 91 },
    hosts: hostStates(BREAKERS, [{ keys: keys(), ageMs: 0 }], nowMs),
    processes: ["harvest.js", "harvest.js", "enrich.js"].map((program, index) => ({
      id: String(index),
      pid: 4217 + index * 13,
      machine: index < 2 ? "worker-1" : "worker-2",
      program,
      startedMs: nowMs - (47 - index * 12) * MINUTE_MS,
      writtenMs: nowMs - 400 - index * 150,
      calls: 52 - index * 13,
      inFlight: 9 - index * 2,
      waiting: 40 - index * 12,
      keys: 21 - index * 4,
      isPartial: false,
    })),
    series: { stepMs: 1000, points: series(nowMs) },
    events: events(nowMs),
    run: {
      folder: "papers",
      state: "running",
      command: "run works.csv",
      startedMs: nowMs - 47 * MINUTE_MS,
      endedMs: null,
      isPaused: false,
      ...{ total: 4200, done: 2615, failed: 231, pending: 1354, files: 2615, bytes: 4_830_000_000 },
      timeLeftMs: 25 * MINUTE_MS,
      failures: [
        { reason: "not-open", works: 148 },
        { reason: "http-status", works: 51 },
        { reason: "html-instead", works: 22 },
        { reason: "unknown-work", works: 10 },
      ],
      resolvers: [
        { resolver: "openalex", asked: 2800, stored: 1422 },
        { resolver: "europe_pmc", asked: 1310, stored: 603 },
        { resolver: "arxiv", asked: 390, stored: 388 },
        { resolver: "unpaywall", asked: 880, stored: 202 },
      ],
      workers: [
        ...[1, 2, 3].map(number => ({
          name: `worker-${number}:41${number}2`,
          startedMs: nowMs - (47 - number * 6) * MINUTE_MS,
          done: 1010 - number * 70,
          failed: 90 - number * 8,
          bytes: 1_900_000_000 - number * 120_000_000,
          taken: number === 3 ? 0 : 8,
          isAlive: number !== 3,
        })),
      ],
      lastFailed: [
        { key: "doi:10.1000/meridian.2231", reason: "http-status", message: "503 from www.meridian-science.example" },
        { key: "doi:10.1000/harbour.77", reason: "not-open", message: "no open copy is known" },
      ],
    },
  };
}

const BREAKERS: readonly BreakerFacts[] = [
  {
    ...{ kind: "host", name: "www.meridian-science.example", state: "open", reason: "failures" },
    ...{ remainingMs: 38_000, isCooling: false, windowFailures: 5 },
    circuits: [
      { name: "landing", state: "open", remainingMs: 38_000, probes: 0 },
      { name: "artifact", state: "closed", remainingMs: 0, probes: 0, failures: 1 },
    ],
  } as BreakerFacts,
  {
    ...{ kind: "host", name: "journals.harbourpress.example", state: "open", reason: "retry-after" },
    ...{ remainingMs: 112_000, isCooling: true, windowFailures: 1, circuits: [] },
  } as BreakerFacts,
  {
    ...{
      kind: "resolver",
      name: "landing_page",
      state: "half_open",
      reason: "failures",
      remainingMs: 0,
      isCooling: false,
    },
    windowFailures: 0,
    circuits: [{ name: "", state: "half_open", remainingMs: 0, probes: 1 }],
  } as BreakerFacts,
];

function keys(): readonly KeySnapshot[] {
  const queued = (owner: string, limit: string, waiting: number, estimatedWaitMs: number) =>
    ({ waiting, estimatedWaitMs, constraint: { kind: "window", owner, limit } }) as const;
  const window = (rate: string, used: number, limit: number, isLearned = false) => ({
    rate,
    unit: "requests",
    used,
    limit,
    isLearned,
  });
  return [
    key("www.meridian-science.example", {
      role: "landing",
      windows: [window("5/SECOND", 0, 5), window("2000/HOUR", 214, 2000)],
    }),
    key("www.meridian-science.example", {
      role: "artifact",
      windows: [window("2/SECOND", 1, 2), window("500/HOUR", 61, 500)],
    }),
    key("journals.harbourpress.example", {
      role: "artifact",
      windows: [window("2/SECOND", 0, 2), window("500/HOUR", 40, 500)],
    }),
    key("service arxiv", {
      ...queued("service arxiv", "1/3SECOND", 26, 74_000),
      windows: [window("1/3SECOND", 1, 1), window("1000/DAY", 412, 1000)],
    }),
    key("api.crossref.org", {
      ...queued("api.crossref.org", "10/SECOND", 41, 4100),
      windows: [window("10/SECOND", 10, 10, true)],
    }),
    key("api.semanticscholar.org", { multiplier: 0.64, windows: [window("1/SECOND", 1, 1)] }),
    key("api.unpaywall.org", {
      ...queued("api.unpaywall.org", "10/SECOND", 9, 900),
      windows: [window("10/SECOND", 10, 10)],
    }),
    key("api.core.ac.uk", { windows: [window("10/MINUTE", 2, 10), window("1000/DAY", 961, 1000)] }),
    key("content.openpapers.example", {
      ...queued("content.openpapers.example", "1/2SECOND", 4, 7400),
      role: "artifact",
      windows: [window("2/SECOND", 1, 2), window("1/2SECOND", 1, 1)],
      order: {
        ...{ rates: "1/2SECOND", remainingMs: 1_260_000, isLooser: false, policyRates: "2/SECOND" },
        ...{ by: "dashboard, 127.0.0.1", reason: "their disk is full" },
      },
    }),
    key("content.openpapers.example", {
      windows: [window("20/SECOND", 7, 20)],
      order: {
        ...{ rates: "20/SECOND", remainingMs: 540_000, isLooser: true, policyRates: "10/SECOND" },
        ...{ by: "ann@ops1", reason: "agreed with the provider for the import" },
      },
    }),
    ...[
      "api.openalex.org",
      "api.datacite.org",
      "europepmc.org",
      "zenodo.org",
      "doaj.org",
      "api.figshare.com",
      "api.osf.io",
    ].map((name, index) =>
      key(name, {
        inFlight: index % 3,
        windows: [window("10/SECOND", (index * 3) % 9, 10), window("5000/HOUR", 700 + index * 90, 5000)],
      }),
    ),
    key("zenodo.org", { role: "artifact", windows: [window("2/SECOND", 1, 2)] }),
    key("europepmc.org", { role: "artifact", windows: [window("2/SECOND", 2, 2), window("500/HOUR", 133, 500)] }),
  ];
}

/** Five minutes: an outage at two thirds. */
function series(nowMs: number): readonly SeriesPoint[] {
  return Array.from({ length: 300 }, (_, index) => {
    const wave = Math.sin(index / 9) + Math.sin(index / 3.7) * 0.4;
    const isOut = index > 190 && index < 225;
    return {
      atMs: Math.floor(nowMs / 1000) * 1000 - (299 - index) * 1000,
      requests: Math.max(0, Math.round(24 + wave * 6 - (isOut ? 9 : 0))),
      waitMs: Math.max(0, Math.round(900 + wave * 500 + index * 6)),
      throttles: index % 61 === 0 ? 2 : 0,
      hits: Math.max(0, Math.round(7 + wave * 4)),
      failures: isOut && index % 4 === 0 ? 3 : 0,
      refused: isOut ? Math.round(6 + wave * 3) : 0,
    };
  });
}

function events(nowMs: number): readonly EventRow[] {
  const host = "www.meridian-science.example";
  const rows: readonly (readonly [number, string, string, string, string, EventRow["level"]])[] = [
    [296, "policy_loaded", "", "", "policy 8a31c20f loaded", "info"],
    [180, "aimd_adjust", "api.semanticscholar.org", "metadata", "pace 0.8 → 0.64: 429", "warn"],
    [
      122,
      "http_attempt",
      "journals.harbourpress.example",
      "artifact",
      "GET 429 (call): throttled, Retry-After 120 s",
      "warn",
    ],
    [122, "breaker_cooldown_set", "journals.harbourpress.example", "", "cooldown for 120 s: retry-after", "bad"],
    [96, "http_attempt", host, "landing", "GET 500 (call): failed", "bad"],
    [95, "http_retry", host, "landing", "attempt 1 failed (500); next in 420 ms", "warn"],
    [93, "http_attempt", host, "landing", "GET ECONNRESET (retry): failed", "bad"],
    [22, "breaker_state_change", host, "landing", "circuit closed → open for 60 s", "bad"],
    [
      18,
      "limit_ordered",
      "content.openpapers.example",
      "artifact",
      "limit 2/SECOND → 1/2SECOND for 1800 s by dashboard, 127.0.0.1: their disk is full",
      "warn",
    ],
    [14, "limit_learned", "api.crossref.org", "metadata", "limit 50/SECOND → 10/SECOND: x-rate-limit", "info"],
    [
      6,
      "operator",
      "api.osf.io",
      "",
      "closed by an operator (127.0.0.1): provider confirms the fix; applied by 3 of 3 processes",
      "info",
    ],
  ];
  return rows.map(([agoS, type, name, role, text, level], seq) => ({
    ...{ seq: seq + 1, atMs: nowMs - agoS * 1000, type, host: name, role, text, level, isRoutine: false },
  }));
}
