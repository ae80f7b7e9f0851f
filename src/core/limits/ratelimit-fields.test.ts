import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { type AnnouncedLimit, announcedLimits, leastRemaining } from "./ratelimit-fields.ts";

const wallMs = Date.UTC(2026, 10, 1, 12, 0, 0);
const days31Ms = 31 * 86_400_000;

function announced(fields: Readonly<Record<string, string>>): readonly AnnouncedLimit[] {
  return announcedLimits(name => (Object.hasOwn(fields, name) ? fields[name] : undefined), wallMs);
}

test("a response without such fields announces nothing", () => {
  assert.deepEqual(announced({}), []);
  assert.deepEqual(announced({ date: "Sun, 01 Nov 2026 12:00:00 GMT", "content-type": "text/html" }), []);
});

test("a named policy is joined with its state, and announced alone without one", () => {
  assert.deepEqual(
    announced({
      "ratelimit-policy": '"burst";q=100;w=60, "daily";q=1000;w=86400',
      ratelimit: '"burst";r=50;t=30',
    }),
    [
      { source: "ratelimit", name: "burst", limit: 100, windowUs: 60_000_000, remaining: 50, resetMs: 30_000 },
      { source: "ratelimit", name: "daily", limit: 1000, windowUs: 86_400_000_000 },
    ],
  );
});

test("a named state without a policy is announced, and a name may be a token", () => {
  assert.deepEqual(announced({ ratelimit: "default;r=0;t=0" }), [
    { source: "ratelimit", name: "default", remaining: 0, resetMs: 0 },
  ]);
});

test("express-rate-limit's newest form, with spaces and a partition key, is parsed", () => {
  assert.deepEqual(
    announced({
      "ratelimit-policy": '"100-in-1min"; q=100; w=60; pk=:ZmFrZQ==:',
      ratelimit: '"100-in-1min"; r=99; t=60',
    }),
    [{ source: "ratelimit", name: "100-in-1min", limit: 100, windowUs: 60_000_000, remaining: 99, resetMs: 60_000 }],
  );
});

test("a quota in another unit than requests is ignored together with its state", () => {
  assert.deepEqual(
    announced({
      "ratelimit-policy": '"volume";q=1000;w=60;qu="content-bytes", "odd";q=5;w=1;qu=7, "calls";q=9;w=1;qu="requests"',
      ratelimit: '"volume";r=0;t=30, "odd";r=0;t=30, "calls";r=8',
    }),
    [{ source: "ratelimit", name: "calls", limit: 9, windowUs: 1_000_000, remaining: 8 }],
  );
});

test("a quota of concurrent requests is a concurrency limit, and its state holds no key", () => {
  assert.deepEqual(
    announced({
      "ratelimit-policy": '"project";q=60;w=3600, "slots";q=5;qu="concurrent-requests"',
      ratelimit: '"project";r=3;t=3600, "slots";r=0;t=3',
    }),
    [
      { source: "ratelimit", name: "project", limit: 60, windowUs: 3_600_000_000, remaining: 3, resetMs: 3_600_000 },
      { source: "ratelimit", name: "slots", concurrency: 5 },
    ],
  );
});

test("the dictionary form takes its window from the policy with the same limit", () => {
  assert.deepEqual(announced({ ratelimit: "limit=100, remaining=50, reset=5", "ratelimit-policy": "100;w=60" }), [
    { source: "ratelimit-dictionary", limit: 100, windowUs: 60_000_000, remaining: 50, resetMs: 5000 },
  ]);
  assert.deepEqual(announced({ ratelimit: "limit=50, remaining=50, reset=5", "ratelimit-policy": "10;w=1, 50;w=60" }), [
    { source: "ratelimit-dictionary", limit: 50, windowUs: 60_000_000, remaining: 50, resetMs: 5000 },
    { source: "ratelimit-dictionary", limit: 10, windowUs: 1_000_000 },
  ]);
});

test("a dictionary without a limit belongs to the only policy, and to none of several", () => {
  assert.deepEqual(announced({ ratelimit: "remaining=1, reset=5", "ratelimit-policy": "10;w=1" }), [
    { source: "ratelimit-dictionary", limit: 10, windowUs: 1_000_000, remaining: 1, resetMs: 5000 },
  ]);
  assert.deepEqual(announced({ ratelimit: "remaining=1", "ratelimit-policy": "10;w=1, 50;w=60" }), [
    { source: "ratelimit-dictionary", remaining: 1 },
    { source: "ratelimit-dictionary", limit: 10, windowUs: 1_000_000 },
    { source: "ratelimit-dictionary", limit: 50, windowUs: 60_000_000 },
  ]);
});

test("a policy field alone is announced", () => {
  assert.deepEqual(announced({ "ratelimit-policy": "10;w=1" }), [
    { source: "ratelimit-dictionary", limit: 10, windowUs: 1_000_000 },
  ]);
});

test("the three-field form is parsed with and without windows", () => {
  const state = { "ratelimit-remaining": "7", "ratelimit-reset": "30" };
  const live = { source: "ratelimit-triple", limit: 100, remaining: 7, resetMs: 30_000 };
  assert.deepEqual(announced({ "ratelimit-limit": "100", ...state }), [live]);
  assert.deepEqual(announced({ "ratelimit-limit": "100", "ratelimit-policy": "100;w=60", ...state }), [
    { ...live, windowUs: 60_000_000 },
  ]);
  assert.deepEqual(announced({ "ratelimit-limit": "100, 100;w=60, 5000;w=3600", ...state }), [
    { ...live, windowUs: 60_000_000 },
    { source: "ratelimit-triple", limit: 5000, windowUs: 3_600_000_000 },
  ]);
});

test("a window beside each number, as Docker Hub sends it, is parsed", () => {
  assert.deepEqual(announced({ "ratelimit-limit": "100;w=21600", "ratelimit-remaining": "76;w=21600" }), [
    { source: "ratelimit-triple", limit: 100, windowUs: 21_600_000_000, remaining: 76 },
  ]);
});

test("Crossref announces a rate and a concurrency", () => {
  const fields = { "x-rate-limit-limit": "10", "x-rate-limit-interval": "1s", "x-concurrency-limit": "3" };
  assert.deepEqual(announced(fields), [{ source: "x-rate-limit", limit: 10, windowUs: 1_000_000, concurrency: 3 }]);
  assert.deepEqual(announced({ "x-concurrency-limit": "1" }), [{ source: "x-rate-limit", concurrency: 1 }]);
});

for (const [interval, windowUs] of [
  ["1", 1_000_000],
  ["60s", 60_000_000],
  ["1 m", 60_000_000],
  ["2m", 120_000_000],
  ["1h", 3_600_000_000],
  ["744h", days31Ms * 1000],
] as const) {
  test(`an interval of ${interval} is ${windowUs} microseconds`, () => {
    assert.deepEqual(announced({ "x-rate-limit-limit": "10", "x-rate-limit-interval": interval }), [
      { source: "x-rate-limit", limit: 10, windowUs },
    ]);
  });
}

for (const interval of ["", "0s", "-1s", "1d", "1.5s", "s", "745h", "1s1s", "9".repeat(30)]) {
  test(`an interval of ${JSON.stringify(interval)} is ignored, the limit is not`, () => {
    assert.deepEqual(announced({ "x-rate-limit-limit": "10", "x-rate-limit-interval": interval }), [
      { source: "x-rate-limit", limit: 10 },
    ]);
  });
}

test("a remaining of zero without a reset, as NCBI sends it, is announced without a reset", () => {
  assert.deepEqual(announced({ "x-ratelimit-limit": "3", "x-ratelimit-remaining": "0" }), [
    { source: "x-ratelimit", limit: 3, remaining: 0 },
  ]);
});

test("a limit below its own remaining, as OpenAlex sent it in 2025, is dropped", () => {
  assert.deepEqual(announced({ "ratelimit-limit": "5", "ratelimit-remaining": "9", "ratelimit-reset": "1" }), [
    { source: "ratelimit-triple", remaining: 9, resetMs: 1000 },
  ]);
});

test("a limit with a window is kept although remaining is higher", () => {
  assert.deepEqual(announced({ "ratelimit-policy": '"a";q=5;w=1', ratelimit: '"a";r=9' }), [
    { source: "ratelimit", name: "a", limit: 5, windowUs: 1_000_000, remaining: 9 },
  ]);
});

test("a reset in seconds until the end of the day, as OpenAlex sends it in 2026, is parsed", () => {
  assert.deepEqual(
    announced({ "x-ratelimit-limit": "1000", "x-ratelimit-remaining": "998", "x-ratelimit-reset": "64147" }),
    [{ source: "x-ratelimit", limit: 1000, remaining: 998, resetMs: 64_147_000 }],
  );
});

test("a name without its hyphen, as CORE sends it, is read unless the correct name is present", () => {
  assert.deepEqual(announced({ "x-ratelimit-limit": "5", "x-ratelimitremaining": "4" }), [
    { source: "x-ratelimit", limit: 5, remaining: 4 },
  ]);
  assert.deepEqual(announced({ "x-ratelimit-remaining": "2", "x-ratelimitremaining": "4" }), [
    { source: "x-ratelimit", remaining: 2 },
  ]);
});

test("the three fields of BioPortal's 429 are parsed", () => {
  assert.deepEqual(announced({ "ratelimit-limit": "15", "ratelimit-remaining": "0", "ratelimit-reset": "1" }), [
    { source: "ratelimit-triple", limit: 15, remaining: 0, resetMs: 1000 },
  ]);
});

test("a reset in epoch seconds or milliseconds is measured against the response's Date", () => {
  const epoch = Date.UTC(2026, 6, 24, 6, 59, 13) / 1000;
  const fields = { "x-ratelimit-remaining": "0", date: "Fri, 24 Jul 2026 06:58:13 GMT" };
  for (const reset of [String(epoch), `${epoch}.000`, String(epoch * 1000)]) {
    assert.deepEqual(announced({ ...fields, "x-ratelimit-reset": reset }), [
      { source: "x-ratelimit", remaining: 0, resetMs: 60_000 },
    ]);
  }
});

test("an epoch reset without a valid Date is measured against the local clock", () => {
  const reset = String(wallMs / 1000 + 5);
  for (const date of ["", "yesterday", "Sun, 31 Nov 2026 12:00:00 GMT"]) {
    assert.deepEqual(announced({ "ratelimit-remaining": "0", "ratelimit-reset": reset, date }), [
      { source: "ratelimit-triple", remaining: 0, resetMs: 5000 },
    ]);
  }
  const fields: Record<string, string> = { "x-rate-limit-remaining": "0", "x-rate-limit-reset": reset };
  assert.deepEqual(
    announcedLimits(name => fields[name], wallMs + 0.25),
    [{ source: "x-rate-limit", remaining: 0, resetMs: 5000 }],
  );
});

test("31 days is the longest delay, and a larger number is an epoch", () => {
  const resetOf = (reset: string) =>
    announced({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset })[0]?.resetMs;
  assert.equal(resetOf("2678400"), days31Ms);
  assert.equal(resetOf("2678401"), undefined);
  assert.equal(resetOf(String((wallMs + days31Ms) / 1000)), days31Ms);
  assert.equal(resetOf(String((wallMs + days31Ms) / 1000 + 1)), undefined);
  assert.equal(resetOf(String(wallMs + days31Ms)), days31Ms);
  assert.equal(resetOf(String(wallMs + days31Ms + 1)), undefined);
  assert.equal(resetOf(String(wallMs / 1000)), 0);
  assert.equal(resetOf(String(wallMs / 1000 - 1)), undefined);
  assert.equal(resetOf("-1"), undefined);
  assert.equal(resetOf("1.001"), 1001);
});

for (const bad of [
  "",
  "-1",
  "1.5",
  "x",
  "1000000001",
  "999999999999999",
  "9".repeat(40),
  "1e3",
  "x, y",
  "NaN",
  "(1 2)",
  "?1",
  '"5"',
]) {
  test(`a limit, a count or a concurrency of ${JSON.stringify(bad)} is ignored, its neighbours are not`, () => {
    assert.deepEqual(announced({ "x-ratelimit-limit": bad, "x-ratelimit-remaining": "1" }), [
      { source: "x-ratelimit", remaining: 1 },
    ]);
    assert.deepEqual(announced({ "x-ratelimit-limit": "7", "x-ratelimit-remaining": bad }), [
      { source: "x-ratelimit", limit: 7 },
    ]);
    assert.deepEqual(announced({ "x-rate-limit-limit": "7", "x-concurrency-limit": bad }), [
      { source: "x-rate-limit", limit: 7 },
    ]);
  });
}

test("fields that were sent several times are several limits, by position, and equal ones are one", () => {
  // As Crossref has sent them.
  assert.deepEqual(announced({ "x-rate-limit-limit": "50, 50", "x-rate-limit-interval": "1s, 1s" }), [
    { source: "x-rate-limit", limit: 50, windowUs: 1e6 },
  ]);
  assert.deepEqual(
    announced({ "x-ratelimit-limit": "60, 1000", "x-ratelimit-remaining": "3, 0", "x-ratelimit-reset": "1, 90" }),
    [
      { source: "x-ratelimit", limit: 60, remaining: 3, resetMs: 1000 },
      { source: "x-ratelimit", limit: 1000, remaining: 0, resetMs: 90_000 },
    ],
  );
  assert.deepEqual(
    announced({ "ratelimit-limit": "9, 9", "ratelimit-remaining": "4, 0", "ratelimit-reset": "5, 60" }),
    [
      { source: "ratelimit-triple", limit: 9, remaining: 4, resetMs: 5000 },
      { source: "ratelimit-triple", remaining: 0, resetMs: 60_000 },
    ],
  );
  // A single value belongs to each limit, and a value that is not a number to none.
  assert.deepEqual(announced({ "x-ratelimit-remaining": "x, 0", "x-ratelimit-reset": "30" }), [
    { source: "x-ratelimit", remaining: 0, resetMs: 30_000 },
  ]);
});

test("however often a field was sent, at most 32 limits are read", () => {
  const many = Array.from({ length: 500 }, (_, index) => index + 1).join();
  assert.equal(announced({ "x-ratelimit-limit": many }).length, 32);
  assert.equal(announced({ "x-rate-limit-limit": "7", "x-rate-limit-interval": many }).length, 32);
});

test("a limit or a concurrency of zero is ignored, a remaining of minus zero is zero", () => {
  assert.deepEqual(announced({ "x-rate-limit-limit": "0", "x-concurrency-limit": "0" }), []);
  assert.deepEqual(announced({ "ratelimit-policy": '"a";q=0;w=1' }), []);
  assert.deepEqual(announced({ "x-ratelimit-remaining": "-0", "x-ratelimit-reset": "-0" }), [
    { source: "x-ratelimit", remaining: 0, resetMs: 0 },
  ]);
});

for (const window of ["0", "-1", "2678401", "1.5", '"60"', "?1"]) {
  test(`a policy with a window of ${window} keeps its limit alone`, () => {
    assert.deepEqual(announced({ "ratelimit-policy": `"a";q=5;w=${window}` }), [
      { source: "ratelimit", name: "a", limit: 5 },
    ]);
  });
}

test("a window or a reset alone is not announced", () => {
  assert.deepEqual(announced({ "x-rate-limit-interval": "1s" }), []);
  assert.deepEqual(announced({ "x-ratelimit-reset": "30", "ratelimit-reset": "30" }), []);
  assert.deepEqual(announced({ "ratelimit-policy": '"a";w=60', ratelimit: '"a";t=30' }), []);
  assert.deepEqual(announced({ ratelimit: '"a";w=60;r=1' }), [{ source: "ratelimit", name: "a", remaining: 1 }]);
});

test("an invalid structured field is ignored as a whole, the others are parsed", () => {
  assert.deepEqual(announced({ "ratelimit-policy": '"a";q=5;w=60,', ratelimit: '"a";r=1' }), [
    { source: "ratelimit", name: "a", remaining: 1 },
  ]);
});

test("a field of more than 4096 characters is ignored", () => {
  const padded = (length: number) => `"a";q=5;w=60;x="${"x".repeat(length - 17)}"`;
  assert.equal(padded(4096).length, 4096);
  assert.equal(announced({ "ratelimit-policy": padded(4096) }).length, 1);
  assert.deepEqual(announced({ "ratelimit-policy": padded(4097) }), []);
  assert.deepEqual(announced({ "x-ratelimit-limit": "5".padEnd(4097) }), []);
});

test("only the first 32 policies are parsed", () => {
  const policies = Array.from({ length: 100 }, (_, index) => `"p${index}";q=5;w=60`).join(", ");
  assert.deepEqual(
    announced({ "ratelimit-policy": policies }).map(({ name }) => name),
    Array.from({ length: 32 }, (_, index) => `p${index}`),
  );
});

test("limits of several field families in one response are all announced", () => {
  assert.deepEqual(
    announced({ "x-ratelimit-limit": "5", "ratelimit-limit": "6", "x-rate-limit-limit": "7" }).map(
      ({ source }) => source,
    ),
    ["ratelimit-triple", "x-ratelimit", "x-rate-limit"],
  );
});

const FIELD_NAMES = [
  "date",
  "ratelimit",
  "ratelimit-policy",
  ...["ratelimit-", "x-ratelimit-", "x-rate-limit-"].flatMap(prefix => [
    `${prefix}limit`,
    `${prefix}remaining`,
    `${prefix}reset`,
  ]),
  "x-ratelimitremaining",
  "x-rate-limit-interval",
  "x-concurrency-limit",
];

test("no field value makes parsing throw, and every announced value is in range", () => {
  const scrap = fc.constantFrom(
    '"a"',
    "a",
    ";",
    "q=",
    "w=",
    "r=",
    "t=",
    "qu=",
    "limit=",
    "remaining=",
    ", ",
    "-",
    ".",
    "(",
    ":",
    "@",
    "%",
    " ",
  );
  const number = fc.oneof(fc.integer(), fc.double(), fc.integer({ min: 0, max: 100 })).map(String);
  const value = fc.oneof(
    fc.string(),
    number,
    fc.array(fc.oneof(scrap, number), { maxLength: 16 }).map(parts => parts.join("")),
  );
  const fields = fc.dictionary(fc.constantFrom(...FIELD_NAMES), value);
  fc.assert(
    fc.property(fields, record => {
      for (const announcement of announced(record)) assertInRange(announcement);
    }),
    { numRuns: 5000 },
  );
});

function assertInRange(announcement: AnnouncedLimit): void {
  const { limit, windowUs, remaining, resetMs, concurrency } = announcement;
  const inRange = (value: number | undefined, min: number, max: number) =>
    value === undefined || (Number.isSafeInteger(value) && !Object.is(value, -0) && value >= min && value <= max);
  assert.ok(limit !== undefined || remaining !== undefined || concurrency !== undefined);
  assert.ok(windowUs === undefined || limit !== undefined);
  assert.ok(inRange(limit, 1, 1e9));
  assert.ok(inRange(windowUs, 1_000_000, days31Ms * 1000));
  assert.ok(inRange(remaining, 0, 1e9));
  assert.ok(inRange(resetMs, 0, days31Ms));
  assert.ok(inRange(concurrency, 1, 1e9));
  assert.ok(windowUs !== undefined || limit === undefined || remaining === undefined || remaining <= limit);
  assert.ok(Object.values(announcement).every(value => value !== undefined));
}

const recordings: Readonly<Record<string, readonly AnnouncedLimit[]>> = {
  "api.crossref.org/work-elife.01567-polite-single-pdf-links": [
    { source: "x-rate-limit", limit: 10, windowUs: 1_000_000, concurrency: 3 },
  ],
  "api.crossref.org/works-list-polite-array": [
    { source: "x-rate-limit", limit: 3, windowUs: 1_000_000, concurrency: 3 },
  ],
  "api.crossref.org/work-pone.0033693-public-pool": [
    { source: "x-rate-limit", limit: 5, windowUs: 1_000_000, concurrency: 1 },
  ],
  "api.crossref.org/work-not-found-404": [{ source: "x-rate-limit", limit: 5, windowUs: 1_000_000, concurrency: 1 }],
  "api.openalex.org/work-pone.0000030": [{ source: "x-ratelimit", limit: 1000, remaining: 998, resetMs: 64_147_000 }],
  "api.openalex.org/work-select-open_access-2025": [{ source: "ratelimit-triple", remaining: 9, resetMs: 1000 }],
  "api.openalex.org/work-not-found-404": [{ source: "ratelimit-triple", remaining: 9, resetMs: 1000 }],
  "eutils.ncbi.nlm.nih.gov/esearch-ok": [{ source: "x-ratelimit", limit: 3, remaining: 0 }],
  "zenodo.org/record-5244404-publication": [{ source: "x-ratelimit", limit: 133, remaining: 131, resetMs: 60_000 }],
  "api.unpaywall.org/doi-closed": [],
  "api.osf.io/node-files-list": [],
  "api.semanticscholar.org/paper-openaccesspdf-direct": [],
  "web.archive.org/replay-id_-redirect-302": [],
};

// The recordings are outside the repository and may be absent. The tests above contain the same headers.
const folder = join(import.meta.dirname, "../../../../shared/fixtures/apis");
if (existsSync(folder)) {
  for (const [recording, expected] of Object.entries(recordings)) {
    test(`the recording ${recording} announces the recorded limits`, () => {
      const { headers } = JSON.parse(readFileSync(join(folder, `${recording}.headers.json`), "utf8"));
      assert.deepEqual(announced(headers), expected);
    });
  }
}

test("the least remaining quota is the smallest that is announced", () => {
  const least = (...all: readonly (number | undefined)[]) =>
    leastRemaining(all.map(remaining => ({ source: "ratelimit", ...(remaining !== undefined && { remaining }) })));
  assert.equal(least(), undefined);
  assert.equal(least(undefined), undefined);
  assert.equal(least(5, undefined, 3, 4), 3);
  assert.equal(least(undefined, 0, 2), 0);
});
