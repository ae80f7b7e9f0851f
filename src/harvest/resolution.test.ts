import assert from "node:assert/strict";
import { test } from "node:test";
import type { AttemptFailure } from "./attempt-failure.ts";
import type { DownloadedFile } from "./manifest/manifest-files.ts";
import { Resolution, type ResolutionOptions } from "./resolution.ts";
import type { Candidate, Finding, Resolver } from "./resolvers/resolver.ts";
import type { NextStep, PendingStep } from "./step.ts";
import type { WorkIds } from "./work.ts";

const WORK = { id: 1, key: "doi:10.1/a", ids: { doi: "10.1/a" } };
const DOWN: AttemptFailure = { reason: "http-status", message: "status 503", status: 503, mayRetry: true };
const NO_PDF: AttemptFailure = { reason: "not-a-pdf", message: "text", mayRetry: false };
const SECOND_US = 1_000_000;

function resolver(name: string, needs: keyof WorkIds = "doi", inferred?: Finding): Resolver {
  return {
    name,
    needs: [],
    ...(inferred === undefined ? {} : { inferred: () => inferred }),
    requestFor: ({ ids }) => {
      const id = ids[needs];
      return id === undefined
        ? undefined
        : { url: `https://${name}.example/${encodeURIComponent(id)}`, role: "metadata" };
    },
    parse: () => ({ kind: "none", reason: "no-copy" }),
  };
}

function redirectTo(hop: number, setsCookies = false) {
  return { url: `https://x.example/${hop}`, status: 302, setsCookies };
}

function resolutionOf(resolvers: readonly Resolver[], options: Partial<ResolutionOptions> = {}): Resolution {
  return new Resolution(WORK, {
    order: () => resolvers,
    resolvers,
    formats: ["pdf", "xml"],
    pageReader: undefined,
    archive: undefined,
    maxBreakerWaitMs: 60_000,
    random: () => 0.999,
    ...options,
  });
}

function found(...candidates: readonly (string | Candidate)[]): Finding {
  return {
    kind: "found",
    candidates: candidates.map(each => (typeof each === "string" ? { url: each, kind: "pdf" } : each)),
  };
}

function stepOf(next: NextStep): PendingStep {
  assert.equal(next.kind, "step");
  assert.ok("pending" in next);
  return next.pending;
}

const urlOf = (next: NextStep) => ("pending" in next ? next.pending.step.url : next.reason);

test("candidates of a resolver are fetched before the next resolver is queried", () => {
  const resolution = resolutionOf([resolver("one"), resolver("two")]);
  const query = stepOf(resolution.next(0));
  assert.equal(query.step.url, "https://one.example/10.1%2Fa");
  resolution.applyFinding(query, found("https://x.example/1.pdf", "https://x.example/2.pdf"));
  const first = stepOf(resolution.next(0));
  assert.equal(first.step.url, "https://x.example/1.pdf");
  resolution.failed(first, NO_PDF, 0);
  const second = stepOf(resolution.next(0));
  assert.equal(second.step.url, "https://x.example/2.pdf");
  resolution.failed(second, NO_PDF, 0);
  const other = stepOf(resolution.next(0));
  assert.equal(other.step.url, "https://two.example/10.1%2Fa");
  resolution.applyFinding(other, { kind: "none", reason: "unknown-work" });
  assert.deepEqual(resolution.next(0), { kind: "failed", reason: "not-a-pdf", message: "text" });
});

test("a step with an open circuit is deferred, and other steps go first", () => {
  const resolution = resolutionOf([resolver("one"), resolver("two")]);
  resolution.defer(stepOf(resolution.next(0)), 45 * SECOND_US, "breaker-open");
  const two = stepOf(resolution.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  resolution.applyFinding(two, { kind: "none", reason: "no-copy" });
  const waiting = resolution.next(0);
  assert.equal(waiting.kind, "wait");
  assert.equal(urlOf(waiting), "https://one.example/10.1%2Fa");
});

test("if every step has an open circuit, the work waits up to maxBreakerWaitMs and fails at once beyond it", () => {
  const resolution = resolutionOf([resolver("one")]);
  const waitMessage = "resolver landing_page (consecutive failures, the last: HTTP 503)";
  resolution.defer({ ...stepOf(resolution.next(0)), waitMessage }, 50 * SECOND_US, "breaker-open");
  const waiting = resolution.next(0);
  assert.equal(waiting.kind, "wait");
  assert.ok("pending" in waiting);
  resolution.defer(waiting.pending, 90 * SECOND_US, "breaker-open");
  assert.deepEqual(resolution.next(50 * SECOND_US), {
    kind: "failed",
    reason: "breaker-open",
    message: `circuit open or in cooldown for more than 60 s (--patience): ${waitMessage}`,
  });
});

test("a temporary failure is tried five times over at least 15 s, and other steps go first", () => {
  const resolution = resolutionOf([resolver("one"), resolver("two")]);
  resolution.failed(stepOf(resolution.next(0)), DOWN, 0);
  resolution.applyFinding(stepOf(resolution.next(0)), { kind: "none", reason: "no-copy" });
  let nowUs = 0;
  const pausesS: number[] = [];
  for (let again = 0; again < 4; again += 1) {
    const next = resolution.next(nowUs);
    assert.ok(next.kind === "wait" && "pending" in next);
    pausesS.push((next.pending.notBeforeUs - nowUs) / SECOND_US);
    nowUs = next.pending.notBeforeUs;
    resolution.failed(next.pending, DOWN, nowUs);
  }
  for (const [index, leastS] of [1, 2, 4, 8].entries()) {
    const pauseS = pausesS[index] ?? 0;
    assert.ok(pauseS >= leastS && pauseS <= 2 * leastS + 0.1, `${pauseS} s`);
  }
  assert.deepEqual(resolution.next(nowUs), { kind: "failed", reason: "http-status", message: "status 503" });
});

test("identifiers that a resolver adds enable other resolvers", () => {
  const pmc = resolver("pmc", "pmcid");
  const resolution = resolutionOf([resolver("one"), pmc]);
  const query = stepOf(resolution.next(0));
  assert.equal(
    resolution.applyFinding(query, { kind: "none", reason: "no-copy", ids: { pmcid: "PMC1", doi: "10.9/other" } }),
    true,
  );
  assert.deepEqual(resolution.work.ids, { pmcid: "PMC1", doi: "10.1/a" });
  assert.equal(urlOf(resolution.next(0)), "https://pmc.example/PMC1");
});

test("inferred candidates are fetched first, and the resolver is queried if they fail", () => {
  const resolution = resolutionOf([resolver("arxiv", "doi", found("https://arxiv.example/pdf")), resolver("two")]);
  const file = stepOf(resolution.next(0));
  assert.equal(file.step.url, "https://arxiv.example/pdf");
  resolution.failed(file, NO_PDF, 0);
  const two = stepOf(resolution.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  resolution.applyFinding(two, { kind: "none", reason: "no-copy" });
  assert.equal(urlOf(resolution.next(0)), "https://arxiv.example/10.1%2Fa");
});

test("a less preferred format is fetched last, and an unwanted format never", () => {
  const resolution = resolutionOf([resolver("one"), resolver("two")]);
  const xml: Candidate = { url: "https://x.example/a.xml", kind: "xml" };
  const html: Candidate = { url: "https://x.example/a.html", kind: "html" };
  resolution.applyFinding(stepOf(resolution.next(0)), found(html, xml));
  const two = stepOf(resolution.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  resolution.applyFinding(two, { kind: "none", reason: "no-copy" });
  const file = stepOf(resolution.next(0));
  assert.equal(file.step.url, "https://x.example/a.xml");
  resolution.failed(file, { ...NO_PDF, reason: "not-xml" }, 0);
  assert.equal(urlOf(resolution.next(0)), "not-xml");
});

test("landing pages go to the page reader, and files that are gone to the archive", () => {
  const pageReader = resolver("landing_page", "url");
  const archive = resolver("wayback", "url");
  const resolution = resolutionOf([resolver("one")], { pageReader, archive });
  const page: Candidate = { url: "https://p.example/a", kind: "landing" };
  resolution.applyFinding(stepOf(resolution.next(0)), found(page, page, "https://p.example/gone.pdf"));
  const gone = stepOf(resolution.next(0));
  resolution.failed(gone, { reason: "http-status", message: "status 404", status: 404, mayRetry: false }, 0);
  const look = stepOf(resolution.next(0));
  assert.equal(look.step.url, "https://landing_page.example/https%3A%2F%2Fp.example%2Fa");
  resolution.applyFinding(look, { kind: "none", reason: "no-copy" });
  const archived = stepOf(resolution.next(0));
  assert.equal(archived.step.url, "https://wayback.example/https%3A%2F%2Fp.example%2Fgone.pdf");
  resolution.applyFinding(archived, { kind: "none", reason: "no-copy" });
  assert.equal(urlOf(resolution.next(0)), "http-status");
});

test("an error of the page reader about a page that was sent instead of a file leaves the failure as it is", () => {
  const pageReader: Resolver = {
    ...resolver("landing_page", "url"),
    parse: () => {
      throw new TypeError("unexpected page");
    },
  };
  const resolution = resolutionOf([resolver("one")], { pageReader });
  resolution.applyFinding(stepOf(resolution.next(0)), found("https://p.example/a.pdf"));
  const page = { url: "https://p.example/a.pdf", status: 200, headers: {}, body: "<html>" };
  const failure: AttemptFailure = { reason: "html-instead", message: "HTML page without title", mayRetry: false };
  assert.equal(resolution.failed(stepOf(resolution.next(0)), failure, 0, page), false);
  assert.equal(urlOf(resolution.next(0)), "html-instead");
});

test("the manifest gets no progress with a credential in a URL or in the header fields of a query", () => {
  const clock = { nowUs: 0, wallMs: 1e12 };
  const progressOf = (url: string, headers: Readonly<Record<string, string>>) => {
    const one: Resolver = { ...resolver("one"), requestFor: () => ({ url, role: "metadata", headers }) };
    const resolution = resolutionOf([one]);
    return resolution.progress(clock, stepOf(resolution.next(0)));
  };
  assert.match(progressOf("https://one.example/a", { accept: "application/json" }) ?? "", /one\.example/);
  assert.equal(progressOf("https://one.example/a?token=Sesame", {}), undefined);
  assert.equal(progressOf("https://one.example/a", { Authorization: "Bearer Sesame" }), undefined);
});

test("the time in which no run has a work does not count as its wait for an open circuit", () => {
  const one = resolver("one");
  const wallMs = 1e12;
  const options: ResolutionOptions = {
    ...{ order: () => [one], resolvers: [one], formats: ["pdf"], pageReader: undefined, archive: undefined },
    ...{ maxBreakerWaitMs: 60_000, random: () => 0 },
  };
  const first = new Resolution(WORK, options);
  first.defer(stepOf(first.next(0)), 40 * SECOND_US, "breaker-open");
  const waiting = first.next(0);
  assert.ok(waiting.kind === "wait");
  const progress = first.progress({ nowUs: 0, wallMs }, waiting.pending);
  const kindAfter = (pauseS: number, untilS: number) => {
    const clock = { nowUs: pauseS * SECOND_US, wallMs: wallMs + pauseS * 1000 };
    const restored = Resolution.restored(
      WORK,
      options,
      { progress, inherited: [], queue: "other.example artifact" },
      clock,
    );
    restored.defer(stepOf(restored.next(clock.nowUs)), untilS * SECOND_US, "breaker-open");
    return restored.next(clock.nowUs).kind;
  };
  assert.equal(kindAfter(40, 60), "wait");
  assert.equal(kindAfter(40, 61), "failed");
  assert.equal(kindAfter(86_400, 86_420), "wait");
  assert.equal(kindAfter(86_400, 86_421), "failed");
});

test("a work with its article is done, and says which files an open circuit or a spent quota has kept back", () => {
  const other: Resolver = { ...resolver("other"), offers: ["xml"] };
  const resolution = resolutionOf([resolver("pdfs"), resolver("index"), other], { collectsAll: true });
  // What a service has that offers PDFs alone is not missing when the article is stored.
  resolution.skip(stepOf(resolution.next(0)), "10/DAY of pdfs.example is spent");
  const supplement: Candidate = { url: "https://x.example/s.zip", kind: "file", role: "supplement" };
  resolution.applyFinding(stepOf(resolution.next(0)), found("https://x.example/1.pdf", supplement));
  assert.equal(urlOf(resolution.next(0)), "https://x.example/1.pdf");
  const file: Partial<DownloadedFile> = { role: "article", mediaType: "application/pdf", bytes: 7 };
  resolution.stored(file as DownloadedFile, "ok");
  const download = stepOf(resolution.next(0));
  assert.equal(download.step.url, supplement.url);
  const waitMessage = "x.example (consecutive failures)";
  resolution.defer({ ...download, waitMessage }, 90 * SECOND_US, "breaker-open");
  resolution.skip(stepOf(resolution.next(0)), "10/DAY of other.example is spent");
  const missing = `supplement: ${waitMessage}; other: 10/DAY of other.example is spent`;
  const message = `2 further files could not be downloaded: ${missing}`;
  assert.deepEqual(resolution.next(0), { kind: "done", reason: "ok", message, bytes: 7 });
});

test("a work with all formats has 300 sources and supplements at most, and says so if it has more", () => {
  const supplements = (count: number) =>
    Array.from({ length: count }, (_, at): Candidate => {
      return { url: `https://x.example/${at}.csv`, kind: "file", role: "supplement" };
    });
  const file: Partial<DownloadedFile> = { role: "article", mediaType: "application/pdf", bytes: 7 };
  for (const [count, message] of [
    [300, undefined],
    [301, "only the first 300 sources and supplements are downloaded"],
  ] as const) {
    const resolution = resolutionOf([resolver("one"), { ...resolver("two"), offers: ["xml"] }], { collectsAll: true });
    resolution.applyFinding(stepOf(resolution.next(0)), found("https://x.example/1.pdf", ...supplements(count)));
    stepOf(resolution.next(0));
    resolution.stored(file as DownloadedFile, "ok");
    for (let at = 0; at < 300; at += 1) {
      assert.equal(stepOf(resolution.next(0)).step.url, `https://x.example/${at}.csv`);
      resolution.stored({ ...file, role: "supplement", bytes: 1 } as DownloadedFile, "ok");
    }
    // Supplements take no place of articles.
    const xml: Candidate = { url: "https://x.example/1.xml", kind: "xml" };
    resolution.applyFinding(stepOf(resolution.next(0)), found(xml));
    assert.equal(urlOf(resolution.next(0)), xml.url);
    assert.deepEqual(resolution.next(0), { kind: "done", reason: "ok", message, bytes: 307 });
  }
});

test("supplements that cannot be downloaded take no place of articles", () => {
  const resolvers = [resolver("one"), { ...resolver("two"), offers: ["xml"] as const }];
  const resolution = resolutionOf(resolvers, { collectsAll: true, archive: resolver("archive", "url") });
  const supplements = Array.from({ length: 60 }, (_, at): Candidate => {
    return { url: `https://x.example/${at}.csv`, kind: "file", role: "supplement" };
  });
  resolution.applyFinding(stepOf(resolution.next(0)), found("https://x.example/1.pdf", ...supplements));
  stepOf(resolution.next(0));
  resolution.stored({ role: "article", mediaType: "application/pdf", bytes: 7 } as DownloadedFile, "ok");
  for (const { url } of supplements) {
    const download = stepOf(resolution.next(0));
    assert.equal(download.step.url, url);
    const gone = { reason: "http-status", message: "status 404", status: 404, mayRetry: false } as const;
    resolution.failed(download, gone, 0);
  }
  const xml: Candidate = { url: "https://x.example/1.xml", kind: "xml" };
  resolution.applyFinding(stepOf(resolution.next(0)), found(xml, ...supplements));
  assert.equal(urlOf(resolution.next(0)), xml.url);
  const message = "60 further files could not be downloaded: supplement: status 404";
  assert.deepEqual(resolution.next(0), { kind: "done", reason: "ok", message, bytes: 7 });
});

test("redirects are followed, and fail after a loop or too many hops", () => {
  const resolution = resolutionOf([resolver("one")]);
  resolution.applyFinding(stepOf(resolution.next(0)), found("https://x.example/0"));
  let pending = stepOf(resolution.next(0));
  for (let hop = 1; hop <= 10; hop += 1) {
    assert.equal(resolution.redirected(pending, redirectTo(hop)), undefined);
    pending = stepOf(resolution.next(0));
    assert.equal(pending.step.url, `https://x.example/${hop}`);
  }
  const failure = resolution.redirected(pending, redirectTo(11));
  assert.ok(failure !== undefined);
  resolution.failed(pending, failure, 0);
  assert.equal(urlOf(resolution.next(0)), "redirects");
});

test("a redirect to a visited URL is followed if a response between them has set a cookie, and bounded like others", () => {
  const resolution = resolutionOf([resolver("one")]);
  resolution.applyFinding(stepOf(resolution.next(0)), found("https://x.example/0"));
  const follow = (hop: number, setsCookies: boolean) => {
    const failure = resolution.redirected(stepOf(resolution.next(0)), redirectTo(hop, setsCookies));
    return failure?.message;
  };
  assert.equal(follow(1, true), undefined);
  assert.equal(follow(0, false), undefined);
  assert.match(follow(1, false) ?? "", /^redirect loop/);

  const endless = resolutionOf([resolver("one")]);
  endless.applyFinding(stepOf(endless.next(0)), found("https://x.example/0"));
  let hops = 0;
  for (let failure: AttemptFailure | undefined; failure === undefined; hops += 1) {
    failure = endless.redirected(stepOf(endless.next(0)), redirectTo(0, true));
    if (failure !== undefined) assert.match(failure.message, /^more than 10 redirects/);
  }
  assert.equal(hops, 11);
});

test("a resolver with endless follow-up requests is stopped", () => {
  const resolution = resolutionOf([resolver("one")]);
  let next = resolution.next(0);
  let rounds = 0;
  while (next.kind === "step") {
    rounds += 1;
    resolution.applyFinding(next.pending, {
      kind: "follow-up",
      request: { url: `https://one.example/${rounds}`, role: "metadata" },
    });
    next = resolution.next(0);
  }
  assert.equal(urlOf(next), "unreadable");
  assert.ok(rounds < 20);
});

test("a work that no resolver handles fails with no-resolver", () => {
  assert.equal(urlOf(resolutionOf([]).next(0)), "no-resolver");
});

test("a work whose copies have only formats that the run does not use fails with no-copy, and not with no-resolver", () => {
  const xml: Candidate = { url: "https://x.example/a.xml", kind: "xml" };
  const page: Candidate = { url: "https://x.example/a", kind: "landing" };
  for (const [candidates, kinds] of [
    [[xml], "xml"],
    [[page], "pages"],
    [[xml, page, xml], "xml, pages"],
  ] as const) {
    const resolution = resolutionOf([resolver("one")], { formats: ["pdf"] });
    resolution.applyFinding(stepOf(resolution.next(0)), found(...candidates));
    const next = resolution.next(0);
    assert.ok(next.kind === "failed");
    assert.equal(next.reason, "no-copy");
    assert.equal(next.message, `found only ${kinds}, not used (--formats, --resolvers)`);
  }
});
