/**
 * One work on its way: whom to ask, what to fetch, and what to do when a way is shut. Pure: instants come in, the next
 * step comes out. Somebody else takes the steps, and tells how they went.
 */
import { backoffMs } from "../core/breaker/backoff.ts";
import type { Trouble } from "./attempt-failure.ts";
import type { FileKind } from "./downloads/file-check.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import { mostTelling, type Reason } from "./reason.ts";
import type { Candidate, Finding, Question, Resolver } from "./resolvers/resolver.ts";
import type { FetchStep, Next, Step, Way } from "./step.ts";
import type { Work, WorkIds } from "./work.ts";

export interface JourneyOptions {
  /** Who may be asked about a work, the best first. Asked again whenever more is known of it. */
  readonly order: (work: Work) => readonly Resolver[];
  /** Kinds of files that are wanted, the best first. */
  readonly formats: readonly FileKind[];
  /** Who reads pages that are found on the way; undefined when nobody may. */
  readonly pageReader: Resolver | undefined;
  /** Who may have kept a file that is gone. */
  readonly archive: Resolver | undefined;
  /** How long a work waits for hosts that are cut off, when there is nothing else to try. */
  readonly patienceMs: number;
  readonly random: () => number;
}

/** Steps of one kind that are as good as any; in between, resolvers that have not been asked. */
const RANK = { best: 0, followUp: 1, resolver: 2, page: 3, later: 4, archive: 5, lesser: 6 } as const;

/** What may pass is tried over a quarter of a minute at the least: an outage that is over soon costs no work. */
const TRIES_MAX = 5;
const BACKOFF = { baseMs: 2000, capMs: 30_000 };
const HOPS_MAX = 10;
const ROUNDS_MAX = 8;
/** More is a list of mirrors, or a trap. */
const CANDIDATES_MAX = 24;

export class Journey {
  readonly #options: JourneyOptions;
  #work: ListedWork;
  #ways: Way[] = [];
  readonly #asked = new Set<string>();
  /** Addresses that were fetched or asked about, or will be. */
  readonly #places = new Set<string>();
  readonly #reasons = new Set<Reason>();
  readonly #messages = new Map<Reason, string>();
  /** Since when there is nothing to try but hosts that are cut off. */
  #strandedSinceUs: number | undefined;

  constructor(work: ListedWork, options: JourneyOptions) {
    this.#work = work;
    this.#options = options;
  }

  get work(): ListedWork {
    return this.#work;
  }

  /** What to do next. A way that was handed out is the journey's no longer, until it is told how it went. */
  next(nowUs: number): Next {
    const ready = this.#best(nowUs);
    const fresh = ready === undefined || ready.rank > RANK.resolver ? this.#freshResolver() : undefined;
    if (fresh !== undefined) return { kind: "step", way: fresh };
    // What resolvers know by themselves may have brought ways while they were gone through.
    const way = this.#best(nowUs) ?? this.#soonest();
    if (way === undefined) return this.#over();
    const isReady = way.notBeforeUs <= nowUs;
    if (!isReady && this.#isStranded(way.notBeforeUs, nowUs)) return this.#over("breaker-open");
    this.#ways.splice(this.#ways.indexOf(way), 1);
    return { kind: isReady ? "step" : "wait", way };
  }

  /** Whether there is something else to try at this moment. */
  hasOther(nowUs: number): boolean {
    return (
      this.#ways.some(way => way.notBeforeUs <= nowUs) ||
      this.#options.order(this.#work).some(each => this.#isFresh(each))
    );
  }

  /** The host will not have it before `untilUs`: others first. */
  movedBack(way: Way, untilUs: number, isCutOff: boolean): void {
    this.#ways.push({ ...way, notBeforeUs: untilUs, isCutOff });
  }

  /** Undefined where it goes on at the new address; otherwise why it does not: then the way has `failed`. */
  redirected(way: Way, url: string): Trouble | undefined {
    if (way.trail.includes(url) || way.trail.length > HOPS_MAX) {
      const message = way.trail.includes(url) ? "they lead in a circle" : `more than ${HOPS_MAX}`;
      return { reason: "redirects", message, mayPass: false };
    }
    this.#sent();
    // The same errand: before all others of its kind.
    this.#ways.unshift({ ...way, step: { ...way.step, url }, trail: [...way.trail, url], notBeforeUs: 0 });
    return undefined;
  }

  failed(way: Way, trouble: Trouble, nowUs: number): void {
    const tries = way.tries + 1;
    if (trouble.mayPass && tries < TRIES_MAX) {
      // At least half of what it could be, so that luck does not shorten it to nothing.
      const halfMs = Math.min(BACKOFF.capMs, BACKOFF.baseMs * 2 ** (tries - 1)) / 2;
      const pauseMs = Math.max(halfMs, backoffMs(BACKOFF, tries, this.#options.random(), undefined));
      this.#ways.push({ ...way, tries, notBeforeUs: nowUs + pauseMs * 1000, isCutOff: false });
      return;
    }
    this.#remember(trouble.reason, trouble.message);
    const { step } = way;
    if (step.kind !== "fetch") return;
    if (trouble.reason === "html-instead") this.#page(step.url);
    if (trouble.status === 404 || trouble.status === 410) this.#archived(step.url);
  }

  /** A resolver has answered. True when more is known of the work than before. */
  answered(way: Way, finding: Finding): boolean {
    this.#sent();
    const { step, round } = way;
    if (step.kind !== "ask") return false;
    if (finding.kind === "ask") {
      if (round >= ROUNDS_MAX) this.#remember("unreadable", `${step.resolver.name} asks for ever more questions`);
      else
        this.#ask(
          step.resolver,
          step.about,
          finding.question,
          way.rank === RANK.page ? RANK.page : RANK.followUp,
          round + 1,
        );
      return false;
    }
    return this.#take(finding, step.resolver.name);
  }

  #take(finding: Exclude<Finding, { readonly kind: "ask" }>, resolver: string): boolean {
    if (finding.kind === "trouble") return false;
    if (finding.kind === "none") this.#remember(finding.reason, undefined);
    else {
      for (const candidate of finding.candidates) this.#add(candidate, resolver);
      if (finding.candidates.length === 0) this.#remember("no-copy", undefined);
    }
    const { title, year } = finding.kind === "found" ? finding : {};
    return this.#learn(finding.ids, title, year);
  }

  #add(candidate: Candidate, resolver: string): void {
    if (candidate.kind === "landing") {
      this.#page(candidate.url);
      return;
    }
    const format = this.#options.formats.indexOf(candidate.kind);
    if (format === -1 || this.#places.has(candidate.url) || this.#places.size >= CANDIDATES_MAX) return;
    this.#places.add(candidate.url);
    const step: FetchStep = { kind: "fetch", resolver, candidate, url: candidate.url };
    this.#open(step, format === 0 ? RANK.best : RANK.lesser + format, 0);
  }

  #page(url: string): void {
    const { pageReader } = this.#options;
    const place = `page ${url}`;
    if (pageReader === undefined || this.#places.has(place) || this.#places.size >= CANDIDATES_MAX) return;
    this.#places.add(place);
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const question = pageReader.ask(about);
    if (question !== undefined) this.#ask(pageReader, about, question, RANK.page, 0);
  }

  #archived(url: string): void {
    const { archive } = this.#options;
    const place = `archived ${url}`;
    if (archive === undefined || this.#places.has(place)) return;
    this.#places.add(place);
    const about = { ...this.#work, ids: { ...this.#work.ids, url } };
    const question = archive.ask(about);
    if (question !== undefined) this.#ask(archive, about, question, RANK.archive, 0);
  }

  #ask(resolver: Resolver, about: Work, question: Question, rank: number, round: number): void {
    this.#open({ kind: "ask", resolver, about, question, url: question.url }, rank, round);
  }

  #open(step: Step, rank: number, round: number): void {
    this.#ways.push({ step, rank, trail: [step.url], round, tries: 0, notBeforeUs: 0, isCutOff: false });
  }

  /** The next one to be asked that has not been; what resolvers know by themselves is taken on the way. */
  #freshResolver(): Way | undefined {
    for (const resolver of this.#options.order(this.#work)) {
      if (!this.#isFresh(resolver)) continue;
      this.#asked.add(resolver.name);
      const known = resolver.know?.(this.#work);
      const question = resolver.ask(this.#work);
      const step = question && ({ kind: "ask", resolver, about: this.#work, question, url: question.url } as const);
      if (known !== undefined && known.kind !== "ask") {
        this.#take(known, resolver.name);
        if (step !== undefined) this.#open(step, RANK.later, 0);
        const better = this.#ways.find(way => way.notBeforeUs === 0 && way.rank === RANK.best);
        if (better === undefined) continue;
        this.#ways.splice(this.#ways.indexOf(better), 1);
        return better;
      }
      if (step === undefined) continue;
      const fresh = { rank: RANK.resolver, trail: [step.url], round: 0, tries: 0, notBeforeUs: 0, isCutOff: false };
      return { step, ...fresh };
    }
    return undefined;
  }

  /** One that could not know the work may do so later, by a name that another has added. */
  #isFresh(resolver: Resolver): boolean {
    return (
      !this.#asked.has(resolver.name) &&
      (resolver.ask(this.#work) !== undefined || resolver.know?.(this.#work) !== undefined)
    );
  }

  /** Of those that may be tried now, the first of the best rank. */
  #best(nowUs: number): Way | undefined {
    let best: Way | undefined;
    for (const way of this.#ways) {
      if (way.notBeforeUs <= nowUs && (best === undefined || way.rank < best.rank)) best = way;
    }
    return best;
  }

  #soonest(): Way | undefined {
    let soonest: Way | undefined;
    for (const way of this.#ways) if (soonest === undefined || way.notBeforeUs < soonest.notBeforeUs) soonest = way;
    return soonest;
  }

  /** True when all that is left is cut off, and for longer than it is worth waiting. */
  #isStranded(soonestUs: number, nowUs: number): boolean {
    if (!this.#ways.every(way => way.isCutOff)) return false;
    this.#strandedSinceUs ??= nowUs;
    return soonestUs > this.#strandedSinceUs + this.#options.patienceMs * 1000;
  }

  #sent(): void {
    this.#strandedSinceUs = undefined;
  }

  #learn(ids: WorkIds | undefined, title: string | undefined, year: number | undefined): boolean {
    // What was asked for by name is not renamed by others.
    const merged: WorkIds = { ...ids, ...this.#work.ids };
    const isMore = Object.keys(merged).length > Object.keys(this.#work.ids).length;
    const { title: ownTitle = title, year: ownYear = year } = this.#work;
    const isNew = isMore || ownTitle !== this.#work.title || ownYear !== this.#work.year;
    if (isNew) this.#work = { ...this.#work, ids: merged, title: ownTitle, year: ownYear };
    return isNew;
  }

  #remember(reason: Reason, message: string | undefined): void {
    this.#reasons.add(reason);
    if (message !== undefined) this.#messages.set(reason, message);
  }

  #over(reason = mostTelling(this.#reasons)): Next {
    const stranded = this.#ways.map(({ step }) => URL.parse(step.url)?.host ?? "").filter(host => host !== "");
    const cutOff = reason === "breaker-open" ? [...new Set(stranded)].join(", ") : undefined;
    return { kind: "over", reason, message: cutOff ?? this.#messages.get(reason) };
  }
}
