/**
 * One work on its way: whom to ask, what to fetch, and what to do when a way is shut. Pure: instants come in, the next
 * step comes out. Somebody else takes the steps, and tells how they went.
 */
import { backoffMs } from "../core/breaker/backoff.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import type { FileKind } from "./downloads/file-check.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import { mainReason, type Reason } from "./reason.ts";
import type { Candidate, Finding, Resolver, ResolverRequest } from "./resolvers/resolver.ts";
import type { FetchStep, NextStep, PendingStep, ResolutionStep } from "./step.ts";
import type { Work, WorkIds } from "./work.ts";

export interface ResolutionOptions {
  /** Who may be asked about a work, the best first. Asked again whenever more is known of it. */
  readonly order: (work: Work) => readonly Resolver[];
  /** Kinds of files that are wanted, the best first. */
  readonly formats: readonly FileKind[];
  /** Who reads pages that are found on the way; undefined when nobody may. */
  readonly pageReader: Resolver | undefined;
  /** Who may have kept a file that is gone. */
  readonly archive: Resolver | undefined;
  /** How long a work waits for hosts that are cut off, when there is nothing else to try. */
  readonly maxBreakerWaitMs: number;
  readonly random: () => number;
}

/** Steps of one kind that are as good as any; in between, resolvers that have not been asked. */
const RANK = { best: 0, followUp: 1, resolver: 2, page: 3, later: 4, archive: 5, lesser: 6 } as const;

/** What may pass is tried over a quarter of a minute at the least: an outage that is over soon costs no work. */
const TRIES_MAX = 5;
const BACKOFF = { baseMs: 2000, capMs: 30_000 };
const REDIRECTS_MAX = 10;
const ROUNDS_MAX = 8;
/** More is a list of mirrors, or a trap. */
const CANDIDATES_MAX = 24;

export class Resolution {
  readonly #options: ResolutionOptions;
  #work: ListedWork;
  #pending: PendingStep[] = [];
  readonly #queriedResolvers = new Set<string>();
  /** Addresses that were fetched or asked about, or will be. */
  readonly #seenUrls = new Set<string>();
  readonly #reasons = new Set<Reason>();
  readonly #messages = new Map<Reason, string>();
  /** Since when there is nothing to try but hosts that are cut off. */
  #blockedSinceUs: number | undefined;

  constructor(work: ListedWork, options: ResolutionOptions) {
    this.#work = work;
    this.#options = options;
  }

  get work(): ListedWork {
    return this.#work;
  }

  /** What to do next. A way that was handed out is the journey's no longer, until it is told how it went. */
  next(nowUs: number): NextStep {
    const ready = this.#best(nowUs);
    const fresh = ready === undefined || ready.rank > RANK.resolver ? this.#nextResolver() : undefined;
    if (fresh !== undefined) return { kind: "step", pending: fresh };
    // What resolvers know by themselves may have brought ways while they were gone through.
    const pending = this.#best(nowUs) ?? this.#soonest();
    if (pending === undefined) return this.#finish();
    const isReady = pending.notBeforeUs <= nowUs;
    if (!isReady && this.#isBlockedTooLong(pending.notBeforeUs, nowUs)) return this.#finish("breaker-open");
    this.#pending.splice(this.#pending.indexOf(pending), 1);
    return { kind: isReady ? "step" : "wait", pending };
  }

  /** Whether there is something else to try at this moment. */
  hasAlternative(nowUs: number): boolean {
    return (
      this.#pending.some(pending => pending.notBeforeUs <= nowUs) ||
      this.#options.order(this.#work).some(each => this.#isUntried(each))
    );
  }

  /** The host will not have it before `untilUs`: others first. */
  defer(pending: PendingStep, untilUs: number, isBreakerOpen: boolean): void {
    this.#pending.push({ ...pending, notBeforeUs: untilUs, isBreakerOpen });
  }

  /** Undefined where it goes on at the new address; otherwise why it does not: then the way has `failed`. */
  redirected(pending: PendingStep, url: string): AttemptFailure | undefined {
    if (pending.visitedUrls.includes(url) || pending.visitedUrls.length > REDIRECTS_MAX) {
      const message = pending.visitedUrls.includes(url) ? "they lead in a circle" : `more than ${REDIRECTS_MAX}`;
      return { reason: "redirects", message, mayRetry: false };
    }
    this.#clearBlocked();
    // The same errand: before all others of its kind.
    this.#pending.unshift({
      ...pending,
      step: { ...pending.step, url },
      visitedUrls: [...pending.visitedUrls, url],
      notBeforeUs: 0,
    });
    return undefined;
  }

  failed(pending: PendingStep, failure: AttemptFailure, nowUs: number): void {
    const tries = pending.tries + 1;
    if (failure.mayRetry && tries < TRIES_MAX) {
      // At least half of what it could be, so that luck does not shorten it to nothing.
      const halfMs = Math.min(BACKOFF.capMs, BACKOFF.baseMs * 2 ** (tries - 1)) / 2;
      const pauseMs = Math.max(halfMs, backoffMs(BACKOFF, tries, this.#options.random(), undefined));
      this.#pending.push({ ...pending, tries, notBeforeUs: nowUs + pauseMs * 1000, isBreakerOpen: false });
      return;
    }
    this.#addReason(failure.reason, failure.message);
    const { step } = pending;
    if (step.kind !== "fetch") return;
    if (failure.reason === "html-instead") this.#addPage(step.url);
    if (failure.status === 404 || failure.status === 410) this.#addArchiveLookup(step.url);
  }

  /** A resolver has answered. True when more is known of the work than before. */
  answered(pending: PendingStep, finding: Finding): boolean {
    this.#clearBlocked();
    const { step, round } = pending;
    if (step.kind !== "ask") return false;
    if (finding.kind === "ask") {
      if (round >= ROUNDS_MAX) this.#addReason("unreadable", `${step.resolver.name} asks for ever more questions`);
      else
        this.#addQuery(
          step.resolver,
          step.about,
          finding.request,
          pending.rank === RANK.page ? RANK.page : RANK.followUp,
          round + 1,
        );
      return false;
    }
    return this.#apply(finding, step.resolver.name);
  }

  #apply(finding: Exclude<Finding, { readonly kind: "ask" }>, resolver: string): boolean {
    if (finding.kind === "failure") return false;
    if (finding.kind === "none") this.#addReason(finding.reason, undefined);
    else {
      for (const candidate of finding.candidates) this.#add(candidate, resolver);
      if (finding.candidates.length === 0) this.#addReason("no-copy", undefined);
    }
    const { title, year } = finding.kind === "found" ? finding : {};
    return this.#merge(finding.ids, title, year);
  }

  #add(candidate: Candidate, resolver: string): void {
    if (candidate.kind === "landing") {
      this.#addPage(candidate.url);
      return;
    }
    const format = this.#options.formats.indexOf(candidate.kind);
    if (format === -1 || this.#seenUrls.has(candidate.url) || this.#seenUrls.size >= CANDIDATES_MAX) return;
    this.#seenUrls.add(candidate.url);
    const step: FetchStep = { kind: "fetch", resolver, candidate, url: candidate.url };
    this.#addStep(step, format === 0 ? RANK.best : RANK.lesser + format, 0);
  }

  #addPage(url: string): void {
    const { pageReader } = this.#options;
    const place = `page ${url}`;
    if (pageReader === undefined || this.#seenUrls.has(place) || this.#seenUrls.size >= CANDIDATES_MAX) return;
    this.#seenUrls.add(place);
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const request = pageReader.requestFor(about);
    if (request !== undefined) this.#addQuery(pageReader, about, request, RANK.page, 0);
  }

  #addArchiveLookup(url: string): void {
    const { archive } = this.#options;
    const place = `archived ${url}`;
    if (archive === undefined || this.#seenUrls.has(place)) return;
    this.#seenUrls.add(place);
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const request = archive.requestFor(about);
    if (request !== undefined) this.#addQuery(archive, about, request, RANK.archive, 0);
  }

  #addQuery(resolver: Resolver, about: Work, request: ResolverRequest, rank: number, round: number): void {
    this.#addStep({ kind: "ask", resolver, about, request, url: request.url }, rank, round);
  }

  #addStep(step: ResolutionStep, rank: number, round: number): void {
    this.#pending.push({ step, rank, visitedUrls: [step.url], round, tries: 0, notBeforeUs: 0, isBreakerOpen: false });
  }

  /** The next one to be asked that has not been; what resolvers know by themselves is taken on the way. */
  #nextResolver(): PendingStep | undefined {
    for (const resolver of this.#options.order(this.#work)) {
      if (!this.#isUntried(resolver)) continue;
      this.#queriedResolvers.add(resolver.name);
      const known = resolver.inferred?.(this.#work);
      const request = resolver.requestFor(this.#work);
      const step = request && ({ kind: "ask", resolver, about: this.#work, request, url: request.url } as const);
      if (known !== undefined && known.kind !== "ask") {
        this.#apply(known, resolver.name);
        if (step !== undefined) this.#addStep(step, RANK.later, 0);
        const better = this.#pending.find(pending => pending.notBeforeUs === 0 && pending.rank === RANK.best);
        if (better === undefined) continue;
        this.#pending.splice(this.#pending.indexOf(better), 1);
        return better;
      }
      if (step === undefined) continue;
      const fresh = {
        rank: RANK.resolver,
        visitedUrls: [step.url],
        round: 0,
        tries: 0,
        notBeforeUs: 0,
        isBreakerOpen: false,
      };
      return { step, ...fresh };
    }
    return undefined;
  }

  /** One that could not know the work may do so later, by a name that another has added. */
  #isUntried(resolver: Resolver): boolean {
    return (
      !this.#queriedResolvers.has(resolver.name) &&
      (resolver.requestFor(this.#work) !== undefined || resolver.inferred?.(this.#work) !== undefined)
    );
  }

  /** Of those that may be tried now, the first of the best rank. */
  #best(nowUs: number): PendingStep | undefined {
    let best: PendingStep | undefined;
    for (const pending of this.#pending) {
      if (pending.notBeforeUs <= nowUs && (best === undefined || pending.rank < best.rank)) best = pending;
    }
    return best;
  }

  #soonest(): PendingStep | undefined {
    let soonest: PendingStep | undefined;
    for (const pending of this.#pending)
      if (soonest === undefined || pending.notBeforeUs < soonest.notBeforeUs) soonest = pending;
    return soonest;
  }

  /** True when all that is left is cut off, and for longer than it is worth waiting. */
  #isBlockedTooLong(soonestUs: number, nowUs: number): boolean {
    if (!this.#pending.every(pending => pending.isBreakerOpen)) return false;
    this.#blockedSinceUs ??= nowUs;
    return soonestUs > this.#blockedSinceUs + this.#options.maxBreakerWaitMs * 1000;
  }

  #clearBlocked(): void {
    this.#blockedSinceUs = undefined;
  }

  #merge(ids: WorkIds | undefined, title: string | undefined, year: number | undefined): boolean {
    // What was asked for by name is not renamed by others.
    const merged: WorkIds = { ...ids, ...this.#work.ids };
    const isMore = Object.keys(merged).length > Object.keys(this.#work.ids).length;
    const { title: ownTitle = title, year: ownYear = year } = this.#work;
    const isNew = isMore || ownTitle !== this.#work.title || ownYear !== this.#work.year;
    if (isNew) this.#work = { ...this.#work, ids: merged, title: ownTitle, year: ownYear };
    return isNew;
  }

  #addReason(reason: Reason, message: string | undefined): void {
    this.#reasons.add(reason);
    if (message !== undefined) this.#messages.set(reason, message);
  }

  #finish(reason = mainReason(this.#reasons)): NextStep {
    const blockedHosts = this.#pending.map(({ step }) => URL.parse(step.url)?.host ?? "").filter(host => host !== "");
    const openHosts = reason === "breaker-open" ? [...new Set(blockedHosts)].join(", ") : undefined;
    return { kind: "over", reason, message: openHosts ?? this.#messages.get(reason) };
  }
}
