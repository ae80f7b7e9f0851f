import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trouble } from "./attempt-failure.ts";
import { Journey, type JourneyOptions } from "./resolution.ts";
import type { Candidate, Finding, Resolver } from "./resolvers/resolver.ts";
import type { Next, Way } from "./step.ts";
import type { WorkIds } from "./work.ts";

const WORK = { id: 1, key: "doi:10.1/a", ids: { doi: "10.1/a" } };
const DOWN: Trouble = { reason: "http-status", message: "status 503", status: 503, mayPass: true };
const NO_PDF: Trouble = { reason: "not-a-pdf", message: "text", mayPass: false };
const SECOND_US = 1_000_000;

function resolver(name: string, needs: keyof WorkIds = "doi", know?: Finding): Resolver {
  return {
    name,
    needs: [],
    ...(know === undefined ? {} : { know: () => know }),
    ask: ({ ids }) => {
      const id = ids[needs];
      return id === undefined
        ? undefined
        : { url: `https://${name}.example/${encodeURIComponent(id)}`, role: "metadata" };
    },
    read: () => ({ kind: "none", reason: "no-copy" }),
  };
}

function journeyOf(resolvers: readonly Resolver[], options: Partial<JourneyOptions> = {}): Journey {
  return new Journey(WORK, {
    order: () => resolvers,
    formats: ["pdf", "xml"],
    pageReader: undefined,
    archive: undefined,
    patienceMs: 60_000,
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

function stepOf(next: Next): Way {
  assert.equal(next.kind, "step");
  assert.ok("way" in next);
  return next.way;
}

const urlOf = (next: Next) => ("way" in next ? next.way.step.url : next.reason);

test("a resolver is asked, and what it names is fetched before another is asked", () => {
  const journey = journeyOf([resolver("one"), resolver("two")]);
  const ask = stepOf(journey.next(0));
  assert.equal(ask.step.url, "https://one.example/10.1%2Fa");
  journey.answered(ask, found("https://x.example/1.pdf", "https://x.example/2.pdf"));
  const first = stepOf(journey.next(0));
  assert.equal(first.step.url, "https://x.example/1.pdf");
  journey.failed(first, NO_PDF, 0);
  const second = stepOf(journey.next(0));
  assert.equal(second.step.url, "https://x.example/2.pdf");
  journey.failed(second, NO_PDF, 0);
  const other = stepOf(journey.next(0));
  assert.equal(other.step.url, "https://two.example/10.1%2Fa");
  journey.answered(other, { kind: "none", reason: "unknown-work" });
  assert.deepEqual(journey.next(0), { kind: "over", reason: "not-a-pdf", message: "text" });
});

test("a host that is cut off is moved back, not waited for", () => {
  const journey = journeyOf([resolver("one"), resolver("two")]);
  journey.movedBack(stepOf(journey.next(0)), 45 * SECOND_US, true);
  const two = stepOf(journey.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  journey.answered(two, { kind: "none", reason: "no-copy" });
  const waiting = journey.next(0);
  assert.equal(waiting.kind, "wait");
  assert.equal(urlOf(waiting), "https://one.example/10.1%2Fa");
});

test("when only hosts are left that are cut off, it waits as long as its patience lasts and gives up at once beyond it", () => {
  const journey = journeyOf([resolver("one")]);
  journey.movedBack(stepOf(journey.next(0)), 50 * SECOND_US, true);
  const waiting = journey.next(0);
  assert.equal(waiting.kind, "wait");
  assert.ok("way" in waiting);
  journey.movedBack(waiting.way, 90 * SECOND_US, true);
  assert.deepEqual(journey.next(50 * SECOND_US), { kind: "over", reason: "breaker-open", message: "one.example" });
});

test("what may pass is tried five times, over a quarter of a minute at the least, others first", () => {
  const journey = journeyOf([resolver("one"), resolver("two")]);
  journey.failed(stepOf(journey.next(0)), DOWN, 0);
  journey.answered(stepOf(journey.next(0)), { kind: "none", reason: "no-copy" });
  let nowUs = 0;
  const pausesS: number[] = [];
  for (let again = 0; again < 4; again += 1) {
    const next = journey.next(nowUs);
    assert.ok(next.kind === "wait" && "way" in next);
    pausesS.push((next.way.notBeforeUs - nowUs) / SECOND_US);
    nowUs = next.way.notBeforeUs;
    journey.failed(next.way, DOWN, nowUs);
  }
  for (const [index, leastS] of [1, 2, 4, 8].entries()) {
    const pauseS = pausesS[index] ?? 0;
    assert.ok(pauseS >= leastS && pauseS <= 2 * leastS + 0.1, `${pauseS} s`);
  }
  assert.deepEqual(journey.next(nowUs), { kind: "over", reason: "http-status", message: "status 503" });
});

test("names that a resolver adds let others be asked", () => {
  const pmc = resolver("pmc", "pmcid");
  const journey = journeyOf([resolver("one"), pmc]);
  const ask = stepOf(journey.next(0));
  assert.equal(
    journey.answered(ask, { kind: "none", reason: "no-copy", ids: { pmcid: "PMC1", doi: "10.9/other" } }),
    true,
  );
  assert.deepEqual(journey.work.ids, { pmcid: "PMC1", doi: "10.1/a" });
  assert.equal(urlOf(journey.next(0)), "https://pmc.example/PMC1");
});

test("what a resolver knows by itself is fetched first, and it is asked when that leads nowhere", () => {
  const journey = journeyOf([resolver("arxiv", "doi", found("https://arxiv.example/pdf")), resolver("two")]);
  const file = stepOf(journey.next(0));
  assert.equal(file.step.url, "https://arxiv.example/pdf");
  journey.failed(file, NO_PDF, 0);
  const two = stepOf(journey.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  journey.answered(two, { kind: "none", reason: "no-copy" });
  assert.equal(urlOf(journey.next(0)), "https://arxiv.example/10.1%2Fa");
});

test("a lesser format is taken when nobody else has a better one, and one that is not wanted never", () => {
  const journey = journeyOf([resolver("one"), resolver("two")]);
  const xml: Candidate = { url: "https://x.example/a.xml", kind: "xml" };
  const html: Candidate = { url: "https://x.example/a.html", kind: "html" };
  journey.answered(stepOf(journey.next(0)), found(html, xml));
  const two = stepOf(journey.next(0));
  assert.equal(two.step.url, "https://two.example/10.1%2Fa");
  journey.answered(two, { kind: "none", reason: "no-copy" });
  const file = stepOf(journey.next(0));
  assert.equal(file.step.url, "https://x.example/a.xml");
  journey.failed(file, { ...NO_PDF, reason: "not-xml" }, 0);
  assert.equal(urlOf(journey.next(0)), "not-xml");
});

test("pages are given to whoever reads pages, and files that are gone are looked for in the archive", () => {
  const pageReader = resolver("landing_page", "url");
  const archive = resolver("wayback", "url");
  const journey = journeyOf([resolver("one")], { pageReader, archive });
  const page: Candidate = { url: "https://p.example/a", kind: "landing" };
  journey.answered(stepOf(journey.next(0)), found(page, page, "https://p.example/gone.pdf"));
  const gone = stepOf(journey.next(0));
  journey.failed(gone, { reason: "http-status", message: "status 404", status: 404, mayPass: false }, 0);
  const look = stepOf(journey.next(0));
  assert.equal(look.step.url, "https://landing_page.example/https%3A%2F%2Fp.example%2Fa");
  journey.answered(look, { kind: "none", reason: "no-copy" });
  const archived = stepOf(journey.next(0));
  assert.equal(archived.step.url, "https://wayback.example/https%3A%2F%2Fp.example%2Fgone.pdf");
  journey.answered(archived, { kind: "none", reason: "no-copy" });
  assert.equal(urlOf(journey.next(0)), "http-status");
});

test("redirects go on where they lead, and end where they go in circles or on for ever", () => {
  const journey = journeyOf([resolver("one")]);
  journey.answered(stepOf(journey.next(0)), found("https://x.example/0"));
  let way = stepOf(journey.next(0));
  for (let hop = 1; hop <= 10; hop += 1) {
    assert.equal(journey.redirected(way, `https://x.example/${hop}`), undefined);
    way = stepOf(journey.next(0));
    assert.equal(way.step.url, `https://x.example/${hop}`);
  }
  const trouble = journey.redirected(way, "https://x.example/11");
  assert.ok(trouble !== undefined);
  journey.failed(way, trouble, 0);
  assert.equal(urlOf(journey.next(0)), "redirects");
});

test("a resolver that never stops asking is stopped", () => {
  const journey = journeyOf([resolver("one")]);
  let next = journey.next(0);
  let rounds = 0;
  while (next.kind === "step") {
    rounds += 1;
    journey.answered(next.way, { kind: "ask", question: { url: `https://one.example/${rounds}`, role: "metadata" } });
    next = journey.next(0);
  }
  assert.equal(urlOf(next), "unreadable");
  assert.ok(rounds < 20);
});

test("a work that nobody can know is told so", () => {
  assert.equal(urlOf(journeyOf([]).next(0)), "no-resolver");
});
