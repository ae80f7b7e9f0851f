/**
 * The search for a copy of one work: which resolver to query, which candidate to fetch, what to try when a step fails.
 * Pure: times come in, the next step comes out. The pipeline runs the steps and reports their outcomes.
 */
import { backoffMs } from "../core/breaker/backoff.ts";
import { redirectChainProblem } from "../http/stages/redirect-hop.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import type { FileKind } from "./downloads/file-check.ts";
import { FileCollection, FURTHER_FILES_MAX } from "./file-collection.ts";
import { hostQueueKey } from "./host-queue-key.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import type { DownloadedFile } from "./manifest/manifest-files.ts";
import type { TakenWork } from "./manifest/manifest-queue.ts";
import { PendingSteps } from "./pending-steps.ts";
import { type DoneReason, isTemporary, mainReason, type Reason } from "./reason.ts";
import { parsedProgress, type ResolutionState, type RunClocks, storedProgress } from "./resolution-progress.ts";
import type { Redirect } from "./resolver-query.ts";
import type { Candidate, Finding, Resolver, ResolverRequest, ResolverResponse } from "./resolvers/resolver.ts";
import { safeParse } from "./safe-parse.ts";
import type { FetchStep, NextStep, PendingStep, ResolutionStep, WaitReason } from "./step.ts";
import type { Work } from "./work.ts";
import { withFacts } from "./work-facts.ts";

export interface ResolutionOptions {
  /** The resolvers that can be queried about a work, the best first. Called again when a work gets further ids. */
  readonly order: (work: Work) => readonly Resolver[];
  /** All enabled resolvers. */
  readonly resolvers: readonly Resolver[];
  /** Why the resolver is not queried any more: it has refused this program. Undefined if it is queried. */
  readonly refusalOf?: ((resolver: string) => string | undefined) | undefined;
  /** Wanted kinds of files, the preferred one first. */
  readonly formats: readonly FileKind[];
  /** Whether all files of a work are wanted, and not the first valid one alone. @default false */
  readonly collectsAll?: boolean | undefined;
  /** Reads landing pages of candidates; undefined if that resolver is not enabled. */
  readonly pageReader: Resolver | undefined;
  /** Looks for archived copies of files that are gone (404, 410). */
  readonly archive: Resolver | undefined;
  /** How long a work waits for open circuits when it has nothing else to try. */
  readonly maxBreakerWaitMs: number;
  readonly random: () => number;
}

/** The order of steps; a lower rank goes first. Resolvers that were not queried yet have the rank `resolver`. */
const RANK = { best: 0, followUp: 1, resolver: 2, page: 3, afterInferred: 4, archive: 5, lessPreferred: 6 } as const;

const NOT_BLOCKED = { waitsFor: undefined, waitMessage: undefined } as const;

/** Retries span at least 15 s, so that a short outage fails no work. */
const TRIES_MAX = 5;
const BACKOFF = { baseMs: 2000, capMs: 30_000 };
const REDIRECTS_MAX = 10;
const ROUNDS_MAX = 8;
/** A longer list is a list of mirrors, or an attempt to keep the run busy. */
const SEEN_MAX = 60;
/** URLs of sources and supplements have this prefix among the seen ones: they are counted apart (`FURTHER_FILES_MAX`). */
const FURTHER_FILE = "file ";

export class Resolution {
  readonly #options: ResolutionOptions;
  #work: ListedWork;
  readonly #pending = new PendingSteps();
  readonly #queriedResolvers = new Set<string>();
  /** URLs that have been added as steps, each once. */
  readonly #seenUrls = new Set<string>();
  /** Steps that are left out because a quota is spent. */
  readonly #skipped: PendingStep[] = [];
  /** Undefined if the first valid file is enough. */
  readonly #collection: FileCollection | undefined;
  /** The first message of each reason. */
  readonly #reasons = new Map<Reason, string | undefined>();
  /** Since when every pending step waits for an open circuit or a spent quota, a circuit first. */
  #blockedSinceUs: number | undefined;
  #inherited = 0;

  constructor(work: ListedWork, options: ResolutionOptions) {
    this.#work = work;
    this.#options = options;
    this.#collection = options.collectsAll === true ? new FileCollection() : undefined;
  }

  /** Continues where the progress was written. Steps that were skipped for a spent quota are tried again. */
  static restored(
    work: ListedWork,
    options: ResolutionOptions,
    { progress, inherited, queue }: Pick<TakenWork, "progress" | "inherited" | "queue">,
    clock: RunClocks,
  ): Resolution {
    const resolution = new Resolution(work, options);
    const state = resolution.#parsed(progress, clock);
    if (state !== undefined) {
      // The manifest has given the work because it may start, maybe before the time that is stored in the step.
      const isDue = (pending: PendingStep) => pending.waitsFor !== undefined && hostQueueKey(pending) === queue;
      const steps = state.steps.map(pending => (isDue(pending) ? { ...pending, notBeforeUs: 0 } : pending));
      resolution.#addState({ ...state, steps });
      for (const name of state.queried) resolution.#queriedResolvers.add(name);
      resolution.#blockedSinceUs = blockedSince(state, clock.nowUs);
      resolution.#inherited = state.inherited;
    }
    resolution.inherit(work, inherited, clock);
    return resolution;
  }

  /**
   * Adds what the manifest knows about the work: further identifiers and metadata, and the steps of works that were
   * merged into it. Resolvers that were queried about such a work only are queried about this one too.
   * @param inherited see `TakenWork`
   */
  inherit({ ids, metadata, sources = {} }: ListedWork, inherited: readonly string[], clock: RunClocks): void {
    this.#work = withFacts(this.#work, sources, ids, metadata);
    for (const progress of inherited.slice(this.#inherited)) {
      const state = this.#parsed(progress, clock);
      if (state !== undefined) this.#addState(state);
    }
    this.#inherited = inherited.length;
  }

  /** How many texts of `TakenWork.inherited` the resolution has. */
  get inherited(): number {
    return this.#inherited;
  }

  #parsed(progress: string | undefined, clock: RunClocks): ResolutionState | undefined {
    const settings = { resolvers: this.#options.resolvers, formats: formatsText(this.#options) };
    return progress === undefined ? undefined : parsedProgress(progress, this.#work, settings, clock);
  }

  #addState({ steps, skipped, held, collected, seenUrls, reasons }: ResolutionState): void {
    const isNew = ({ step, visitedUrls: [url = step.url] }: PendingStep) =>
      step.kind === "ask"
        ? !this.#seenUrls.has(pageKey(url))
        : !this.#seenUrls.has(url) && !this.#seenUrls.has(`${FURTHER_FILE}${url}`);
    const released = collected && this.#collection?.restore(collected, held.filter(isNew));
    const tried = skipped.map(pending => ({ ...pending, ...NOT_BLOCKED }));
    for (const pending of [...[...steps, ...tried].filter(isNew), ...(released ?? [])]) this.#pending.add(pending);
    for (const url of seenUrls) this.#seenUrls.add(url);
    for (const [reason, message] of reasons) if (!isTemporary(reason)) this.#addReason(reason, message);
  }

  get work(): ListedWork {
    return this.#work;
  }

  /**
   * What the manifest stores while the work is not in memory; undefined if the work must start again.
   * @param started the step that `next` has returned and that has not been sent
   */
  progress(clock: RunClocks, started?: PendingStep): string | undefined {
    return storedProgress(
      {
        formats: formatsText(this.#options),
        steps: [...(started === undefined ? [] : [started]), ...this.#pending.all],
        skipped: this.#skipped,
        queried: [...this.#queriedResolvers],
        seenUrls: [...this.#seenUrls],
        reasons: [...this.#reasons],
        blockedSinceUs: this.#blockedSinceUs,
        inherited: this.#inherited,
        held: this.#collection?.held ?? [],
        collected: this.#collection?.state,
      },
      this.#work,
      clock,
    );
  }

  /** The next step. It is no longer pending; the caller reports its outcome. */
  next(nowUs: number): NextStep {
    this.#dropSwitchedOff();
    const collection = this.#collection;
    if (collection !== undefined) this.#pending.keep((pending, others) => collection.needs(pending, others));
    const ready = this.#pending.best(nowUs);
    const query = ready === undefined || ready.rank > RANK.resolver ? this.#nextResolver() : undefined;
    if (query !== undefined) return { kind: "step", pending: query };
    // `#nextResolver` may have added steps that need no query.
    const pending = this.#pending.best(nowUs) ?? this.#nextWaiting(nowUs);
    if (pending === undefined) return this.#finish(this.#pending.all.length === 0 ? undefined : "breaker-open");
    this.#pending.remove(pending);
    return { kind: pending.notBeforeUs <= nowUs ? "step" : "wait", pending };
  }

  /** The hub has refused the step until `untilUs`; other steps go first. */
  defer(pending: PendingStep, untilUs: number, waitsFor: WaitReason): void {
    this.#pending.add({ ...pending, notBeforeUs: untilUs, waitsFor });
  }

  /** Whether the file of a step would be the main file of its work or a further one; undefined if only one is wanted. */
  placeOf({ step }: PendingStep): "main" | "further" | undefined {
    return this.#collection?.placeOf(step);
  }

  /** A file is stored, and the search for the other files of the work goes on. */
  stored(file: DownloadedFile, reason: DoneReason): void {
    this.#clearBlocked();
    for (const pending of this.#collection?.add(file, reason) ?? []) this.#pending.add(pending);
  }

  /** The quota of a service is spent: the work continues without it, and `docstokg retry` asks it again. */
  skip(pending: PendingStep, message: string): void {
    this.#skipped.push({ ...pending, waitMessage: message });
    this.#addReason("rate-limited", message);
  }

  /** Leaves the step out, because its resolver has refused this program. */
  drop({ step }: PendingStep): void {
    if (step.kind === "ask") this.#addReason("refused", this.#options.refusalOf?.(step.resolver.name));
  }

  /** The step was not sent, and is pending again. */
  repeat(pending: PendingStep): void {
    this.#pending.addFirst(pending);
  }

  /** Sends the query again, in a request without other works. */
  repeatAlone(pending: PendingStep): void {
    this.repeat({ ...pending, isAlone: true });
  }

  /** Undefined if the step continues at the new URL; otherwise the failure, which the caller reports to `failed`. */
  redirected(pending: PendingStep, { url, setsCookies }: Omit<Redirect, "kind">): AttemptFailure | undefined {
    const limits = { host: new URL(url).host, max: REDIRECTS_MAX };
    const { visitedUrls, visitedWithOtherCookies = 0 } = pending;
    const earlier = setsCookies ? visitedUrls.length : visitedWithOtherCookies;
    // With other cookies a URL may give another response, so only the number of these requests counts.
    const visited = visitedUrls.map((visitedUrl, index) => (index < earlier ? "" : visitedUrl));
    const message = redirectChainProblem(visited, url, limits);
    if (message !== undefined) return { reason: "redirects", message, mayRetry: false };
    this.#clearBlocked();
    this.#pending.addFirst({
      ...pending,
      step: { ...pending.step, url },
      visitedUrls: [...visitedUrls, url],
      visitedWithOtherCookies: earlier,
      notBeforeUs: 0,
    });
    return undefined;
  }

  /**
   * Retries the step later, or records its reason and leaves it out. Returns true if `page` has added facts to the work.
   * @param page the HTML page that was sent instead of the file
   */
  failed(pending: PendingStep, failure: AttemptFailure, nowUs: number, page?: ResolverResponse): boolean {
    const tries = pending.tries + 1;
    if (failure.mayRetry && tries < TRIES_MAX) {
      // At least half of the backoff, because full jitter may be 0.
      const halfMs = Math.min(BACKOFF.capMs, BACKOFF.baseMs * 2 ** (tries - 1)) / 2;
      const pauseMs = Math.max(halfMs, backoffMs(BACKOFF, tries, this.#options.random(), undefined));
      this.#pending.add({ ...pending, tries, notBeforeUs: nowUs + pauseMs * 1000, ...NOT_BLOCKED });
      return false;
    }
    if (this.#collection?.addFailure(pending, failure) !== true) this.#addReason(failure.reason, failure.message);
    const { step } = pending;
    this.#pending.removeUrl(step.url);
    // A source or supplement has its own key, and must not use up the limit for articles.
    const isFurtherFile = step.kind === "fetch" && !isArticle(step.candidate);
    if (!isFurtherFile) {
      // The URL is not requested again as a page or as a file.
      this.#seenUrls.add(step.url);
      this.#seenUrls.add(pageKey(step.url));
    }
    if (step.kind !== "fetch") return false;
    if (!isFurtherFile && (failure.status === 404 || failure.status === 410)) this.#addArchiveLookup(step.url);
    return page === undefined ? false : this.#applyPage(step.url, page);
  }

  /** Applies the finding of a resolver. True if the work has got further ids or metadata. */
  applyFinding(pending: PendingStep, finding: Finding): boolean {
    this.#clearBlocked();
    const { step, round } = pending;
    if (step.kind !== "ask") return false;
    if (step.request.role === "landing") for (const url of pending.visitedUrls) this.#seenUrls.add(pageKey(url));
    if (finding.kind === "follow-up") {
      if (round >= ROUNDS_MAX)
        this.#addReason("unreadable", `${step.resolver.name} exceeded ${ROUNDS_MAX} follow-up requests`);
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

  #apply(finding: Exclude<Finding, { readonly kind: "follow-up" }>, resolver: string): boolean {
    if (finding.kind === "failure") return false;
    if (finding.kind === "none") this.#addReason(finding.reason, undefined);
    else {
      const unused = finding.candidates.filter(candidate => !this.#add(candidate, resolver));
      if (unused.length === finding.candidates.length) this.#addReason("no-copy", unusedText(unused));
    }
    const before = this.#work;
    this.#work = withFacts(before, resolver, finding.ids, finding.metadata);
    return this.#work !== before;
  }

  /** Reads the links of a page that a server has sent instead of a file. */
  #applyPage(url: string, page: ResolverResponse): boolean {
    const { pageReader } = this.#options;
    if (pageReader === undefined) return false;
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const finding = safeParse(() => pageReader.parse(page, about));
    return finding.kind === "found" ? this.#apply(finding, pageReader.name) : false;
  }

  /** Adds a step for a candidate, if there is none yet. False if the run uses no files of its kind. */
  #add(candidate: Candidate, resolver: string): boolean {
    if (candidate.kind === "landing") return this.#addPage(candidate.url);
    const isOfArticle = isArticle(candidate);
    const formatIndex = isOfArticle ? this.#options.formats.indexOf(candidate.kind) : 0;
    const isWanted = isOfArticle ? formatIndex !== -1 : this.#collection !== undefined;
    const seenKey = isOfArticle ? candidate.url : `${FURTHER_FILE}${candidate.url}`;
    if (!isWanted) return false;
    if (this.#seenUrls.has(candidate.url) || this.#seenUrls.has(seenKey)) return true;
    const furtherFiles = this.#countFurtherFiles();
    if (isOfArticle && this.#seenUrls.size - furtherFiles >= SEEN_MAX) return true;
    if (!isOfArticle && furtherFiles >= FURTHER_FILES_MAX) {
      this.#collection?.leaveOut();
      return true;
    }
    this.#seenUrls.add(seenKey);
    const step: FetchStep = { kind: "fetch", resolver, candidate, url: candidate.url };
    const pending = newStep(step, formatIndex === 0 ? RANK.best : RANK.lessPreferred + formatIndex, 0);
    const ready = isOfArticle ? pending : this.#collection?.hold(pending);
    if (ready !== undefined) this.#pending.add(ready);
    return true;
  }

  /** Sources and supplements that have been added as steps. */
  #countFurtherFiles(): number {
    return this.#collection === undefined
      ? 0
      : [...this.#seenUrls].filter(seen => seen.startsWith(FURTHER_FILE)).length;
  }

  /** False if the run reads no pages. */
  #addPage(url: string): boolean {
    const { pageReader } = this.#options;
    if (pageReader === undefined) return false;
    if (this.#seenUrls.has(pageKey(url))) return true;
    if (this.#seenUrls.size - this.#countFurtherFiles() >= SEEN_MAX) return true;
    this.#seenUrls.add(pageKey(url));
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const request = pageReader.requestFor(about);
    if (request !== undefined) this.#addQuery(pageReader, about, request, RANK.page, 0);
    return true;
  }

  #addArchiveLookup(url: string): void {
    const { archive } = this.#options;
    const seenKey = `archived ${url}`;
    if (archive === undefined || this.#seenUrls.has(seenKey)) return;
    this.#seenUrls.add(seenKey);
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const request = archive.requestFor(about);
    if (request !== undefined) this.#addQuery(archive, about, request, RANK.archive, 0);
  }

  #addQuery(resolver: Resolver, about: Work, request: ResolverRequest, rank: number, round: number): void {
    this.#addStep({ kind: "ask", resolver, about, request, url: request.url }, rank, round);
  }

  #addStep(step: ResolutionStep, rank: number, round: number): void {
    this.#pending.add(newStep(step, rank, round));
  }

  /**
   * The query of the next resolver that can handle the work. If the resolver infers candidates from the ids alone, these
   * are added without a query, and the download of the best one is returned.
   */
  #nextResolver(): PendingStep | undefined {
    for (const resolver of this.#options.order(this.#work)) {
      if (!this.#isUntried(resolver)) continue;
      this.#queriedResolvers.add(resolver.name);
      const inferred = resolver.inferred?.(this.#work);
      const request = resolver.requestFor(this.#work);
      const isSeen = request?.role === "landing" && this.#seenUrls.has(pageKey(request.url));
      const step =
        request && !isSeen && ({ kind: "ask", resolver, about: this.#work, request, url: request.url } as const);
      if (inferred !== undefined && inferred.kind !== "follow-up") {
        this.#apply(inferred, resolver.name);
        if (step) this.#addStep(step, RANK.afterInferred, 0);
        const download = this.#pending.best(0);
        if (download?.rank !== RANK.best) continue;
        this.#pending.remove(download);
        return download;
      }
      if (step) return newStep(step, RANK.resolver, 0);
    }
    return undefined;
  }

  /** A resolver that cannot handle the work may do so later, by an id that another resolver has added. */
  #isUntried(resolver: Resolver): boolean {
    return (
      !this.#queriedResolvers.has(resolver.name) &&
      this.#collection?.isWanted(resolver.offers, this.#pending.all) !== false &&
      this.#options.refusalOf?.(resolver.name) === undefined &&
      (resolver.requestFor(this.#work) !== undefined || resolver.inferred?.(this.#work) !== undefined)
    );
  }

  #dropSwitchedOff(): void {
    for (const name of this.#queriedResolvers) {
      const refusal = this.#options.refusalOf?.(name);
      if (refusal !== undefined && this.#pending.removeQueries(name)) this.#addReason("refused", refusal);
    }
  }

  /**
   * The step that may start first. If the work would wait for open circuits for longer than `maxBreakerWaitMs`, the step
   * that waits for a spent quota: the run decides how long it waits for quotas. Undefined if there is none.
   */
  #nextWaiting(nowUs: number): PendingStep | undefined {
    const soonest = this.#pending.soonest();
    if (soonest?.waitsFor !== "breaker-open" || !this.#pending.areAllBlocked) return soonest;
    this.#blockedSinceUs ??= nowUs;
    const untilUs = this.#blockedSinceUs + this.#options.maxBreakerWaitMs * 1000;
    return soonest.notBeforeUs <= untilUs ? soonest : this.#pending.soonest("rate-limited");
  }

  #clearBlocked(): void {
    this.#blockedSinceUs = undefined;
  }

  #addReason(reason: Reason, message: string | undefined): void {
    if (this.#reasons.get(reason) === undefined) this.#reasons.set(reason, message);
  }

  #finish(known?: Reason): NextStep {
    const collected = this.#collection?.result([...this.#pending.all, ...this.#skipped]);
    if (collected !== undefined) return { kind: "done", ...collected };
    for (const { name } of this.#options.order(this.#work)) {
      const refusal = this.#options.refusalOf?.(name);
      if (refusal !== undefined && !this.#queriedResolvers.has(name)) this.#addReason("refused", refusal);
    }
    const reason = known ?? mainReason(this.#reasons.keys());
    const message = reason === "breaker-open" ? this.#describeBlocked() : this.#reasons.get(reason);
    return { kind: "failed", reason, message };
  }

  #describeBlocked(): string {
    const waitS = this.#options.maxBreakerWaitMs / 1000;
    return `circuit open or in cooldown for more than ${waitS} s (--patience): ${this.#pending.blockers.join(", ")}`;
  }
}

/**
 * Since when the circuits of a stored work count as open. The time since its first step could have been tried does not
 * count: the circuits may have closed since then, and perhaps no run had the work in memory.
 */
function blockedSince({ steps, blockedSinceUs }: ResolutionState, nowUs: number): number | undefined {
  if (blockedSinceUs === undefined) return undefined;
  const readyUs = Math.min(...steps.map(({ notBeforeUs }) => notBeforeUs));
  return Math.min(nowUs, blockedSinceUs + Math.max(0, nowUs - readyUs));
}

function formatsText({ formats, collectsAll = false }: ResolutionOptions): string {
  return collectsAll ? "all" : formats.join(" ");
}

/** Whether the file is a copy of the work itself, and not a source or supplement. */
function isArticle(
  candidate: Candidate,
): candidate is Candidate & { readonly kind: Exclude<Candidate["kind"], "file"> } {
  return (candidate.role ?? "article") === "article" && candidate.kind !== "file";
}

/** Undefined if there are no candidates. */
function unusedText(candidates: readonly Candidate[]): string | undefined {
  const kinds = new Set(candidates.map(({ kind }) => (kind === "landing" ? "pages" : kind)));
  return kinds.size === 0 ? undefined : `found only ${[...kinds].join(", ")}, not used (--formats, --resolvers)`;
}

/** A URL may be requested once as a page and once as a file. */
function pageKey(url: string): string {
  return `page ${url}`;
}

function newStep(step: ResolutionStep, rank: number, round: number): PendingStep {
  return { step, rank, visitedUrls: [step.url], round, tries: 0, notBeforeUs: 0 };
}
