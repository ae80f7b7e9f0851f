import { PROBE_UNDER_WAY } from "../breaker/denial.ts";
import { BreakerOpenError, BusyError, DownloadError, HubClosedError, RejectedError } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import type { Time, Timer } from "../time/time.ts";
import { type Trouble, troubleOf } from "./attempt-failure.ts";
import type { Downloads } from "./downloads/downloads.ts";
import { type LaneReport, laneOf, partsOfLane } from "./host-queue-key.ts";
import { Schedule } from "./host-queues.ts";
import type { Attempt, ListedWork, Manifest } from "./manifest/manifest.ts";
import type { Reason } from "./reason.ts";
import { Journey, type JourneyOptions } from "./resolution.ts";
import { askOnce } from "./resolver-query.ts";
import type { RobotsGuard } from "./robots-guard.ts";
import type { Way } from "./step.ts";

export interface PipelineOptions extends JourneyOptions {
  readonly hub: Pick<Hub, "request">;
  readonly manifest: Manifest;
  readonly downloads: Downloads;
  readonly robots: RobotsGuard;
  readonly time: Time;
  readonly run: number;
  /** Requests under way at a time, over all hosts. */
  readonly workers: number;
  /** Works that are open at a time, under way or waiting for a host: what is held in memory. */
  readonly maxOpen: number;
  /** The longest a request may be held at the gate; whoever would wait longer comes again at the time it is told. */
  readonly maxWaitMs: number;
  readonly onSettled?:
    | ((work: ListedWork, state: "done" | "failed", reason: Reason, bytes: number) => void)
    | undefined;
  readonly onAttempt?: ((work: ListedWork, attempt: Attempt) => void) | undefined;
  /** A request was not let through and comes again; nothing was sent. */
  readonly onPutOff?: ((host: string, waitMs: number) => void) | undefined;
}

interface Task {
  readonly journey: Journey;
  readonly way: Way;
}

/** A way that would be shut for longer than this is worth trying others before. */
const LONG_WAIT_MS = 30_000;
/** Where every slot is taken, and not by us, there is nobody to be told by: then it is tried again after a while. */
const SLOT_PAUSE_MS = 250;
const PULLED_AT_ONCE = 64;

/**
 * Works on their way, many at a time. Each is a small machine (`Journey`); whose turn it is follows from when hosts are
 * free (`Schedule`); a refusal by the hub is not an error but the time to come back at. Nothing is kept in memory but
 * the works that are open: the list is in the manifest, and so is everything that came of it.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #schedule = new Schedule<Task>();
  /** Requests under way by lane. */
  readonly #underWay = new Map<string, number>();
  /** Who else wants the file at an address that is being fetched. */
  readonly #fetching = new Map<string, Task[]>();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #open = 0;
  #inFlight = 0;
  #lastId = 0;
  /** More may be listed than there is now. */
  #isFed = true;
  #isStarted = false;
  #isDraining = false;
  #isOver = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Resolves when every work is settled, or when it was drained; rejects when it cannot go on, a disk being full. */
  run(): Promise<void> {
    this.#isStarted = true;
    this.#turn();
    return this.#ended.promise;
  }

  /** Works have been listed. */
  wake(): void {
    this.#turn();
  }

  /** No more works will be listed. */
  fed(): void {
    this.#isFed = false;
    this.#turn();
  }

  /** Lets what is under way come to its end, and begins nothing new. What is not settled stays as it is in the manifest. */
  drain(): void {
    this.#isDraining = true;
    this.#turn();
  }

  /** The same at once: what is under way is given up. */
  stop(): void {
    this.#isDraining = true;
    this.#stopping.abort(new Error("stopped"));
    this.#turn();
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get open(): number {
    return this.#open;
  }

  /** Every lane in which somebody is, the busiest first. */
  lanes(): readonly LaneReport[] {
    const nowUs = this.#options.time.monotonicUs();
    const reports = new Map<string, LaneReport>();
    for (const [lane, underWay] of this.#underWay)
      reports.set(lane, { ...partsOfLane(lane), underWay, waiting: 0, freeInMs: 0 });
    for (const { lane, waiting, freeUs } of this.#schedule.lanes()) {
      const freeInMs = Math.max(0, Math.ceil((freeUs - nowUs) / 1000));
      reports.set(lane, { ...partsOfLane(lane), underWay: this.#underWay.get(lane) ?? 0, waiting, freeInMs });
    }
    return [...reports.values()].sort((a, b) => b.underWay + b.waiting - a.underWay - a.waiting);
  }

  /** Timers and promises lead here, to whom nobody listens: what cannot go on is told by `run`. */
  #turn(): void {
    if (this.#isOver || !this.#isStarted) return;
    try {
      this.#go();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #go(): void {
    const { time, workers } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    const nowUs = time.monotonicUs();
    let hasMore = false;
    if (!this.#isDraining) {
      hasMore = this.#pull(nowUs);
      while (this.#inFlight < workers) {
        const taken = this.#schedule.take(nowUs);
        if (taken === undefined) break;
        this.#begin(taken.task, taken.lane);
      }
    }
    if (hasMore) {
      setImmediate(() => this.#turn());
      return;
    }
    const isDone = this.#isDraining ? this.#inFlight === 0 : this.#open === 0 && !this.#isFed;
    if (isDone) {
      this.#isOver = true;
      this.#ended.resolve();
      return;
    }
    const nextUs = this.#isDraining || this.#inFlight >= workers ? undefined : this.#schedule.nextUs();
    // Whoever finishes makes another turn; the timer is for when only time is missing.
    if (nextUs !== undefined) this.#timer = time.setTimer(Math.max(0, (nextUs - nowUs) / 1000), () => this.#turn());
  }

  /** True when there may be more to take, and room for it: that is for the next turn, so that others get theirs. */
  #pull(nowUs: number): boolean {
    const { manifest, run, maxOpen } = this.#options;
    const room = Math.min(PULLED_AT_ONCE, maxOpen - this.#open);
    if (room <= 0) return false;
    const works = manifest.pending(run, this.#lastId, room);
    for (const work of works) {
      this.#lastId = work.id;
      this.#open += 1;
      this.#advance(new Journey(work, this.#options), nowUs);
    }
    return works.length === room;
  }

  /** Puts the next step of a work in its place, or settles it. */
  #advance(journey: Journey, nowUs: number): void {
    const next = journey.next(nowUs);
    if (next.kind === "over") this.#settle(journey, next.reason, next.message);
    else this.#schedule.add({ journey, way: next.way }, laneOf(next.way), next.way.notBeforeUs, nowUs);
  }

  #settle({ work }: Journey, reason: Reason, message: string | undefined): void {
    this.#options.manifest.fail(work.id, reason, message);
    this.#open -= 1;
    this.#options.onSettled?.(work, "failed", reason, 0);
  }

  #begin(task: Task, lane: string): void {
    const { step } = task.way;
    const others = step.kind === "fetch" ? this.#fetching.get(step.url) : undefined;
    if (others !== undefined) {
      others.push(task);
      return;
    }
    if (step.kind === "fetch") this.#fetching.set(step.url, []);
    this.#inFlight += 1;
    this.#underWay.set(lane, (this.#underWay.get(lane) ?? 0) + 1);
    this.#carry(task, lane)
      .catch(error => {
        this.#giveUp(error);
        return true;
      })
      .then(wasSent => this.#finished(task, lane, wasSent));
  }

  #finished({ way: { step } }: Task, lane: string, wasSent: boolean): void {
    const nowUs = this.#options.time.monotonicUs();
    this.#inFlight -= 1;
    const left = (this.#underWay.get(lane) ?? 1) - 1;
    if (left === 0) this.#underWay.delete(lane);
    else this.#underWay.set(lane, left);
    if (step.kind === "fetch") {
      const others = this.#fetching.get(step.url) ?? [];
      this.#fetching.delete(step.url);
      for (const other of others) this.#schedule.putBack(other, laneOf(other.way), nowUs, nowUs);
    }
    // Who was refused has freed nothing, and must not wake the others who were.
    if (wasSent) this.#schedule.unpark(nowUs);
    this.#turn();
  }

  /** True when it was sent, whatever came of it; false when it waits again. */
  async #carry(task: Task, lane: string): Promise<boolean> {
    const { time } = this.#options;
    const startedUs = time.monotonicUs();
    try {
      if (task.way.step.kind === "ask") await this.#ask(task, startedUs);
      else await this.#fetch(task, startedUs);
    } catch (error) {
      if (this.#stopping.signal.aborted) return true;
      if (error instanceof RejectedError) {
        this.#refused(task, lane, error);
        return false;
      }
      if (error instanceof DownloadError || error instanceof HubClosedError || isOurs(error)) throw error;
      this.#failed(task, troubleOf(error), 0, startedUs);
    }
    return true;
  }

  async #ask({ journey, way }: Task, startedUs: number): Promise<void> {
    const { step } = way;
    if (step.kind !== "ask") return;
    const { signal } = this.#stopping;
    const { robots, manifest } = this.#options;
    const objection = step.question.role === "landing" ? await robots.objection(step.url, signal) : undefined;
    if (objection !== undefined) {
      this.#failed({ journey, way }, objection, 0, startedUs);
      return;
    }
    const asked = await askOnce(this.#options, step, signal);
    if (asked.kind === "failed") {
      this.#failed({ journey, way }, asked, asked.bytes, startedUs);
      return;
    }
    if (asked.kind === "redirect") {
      this.#redirected({ journey, way }, asked, startedUs);
      return;
    }
    const { finding, status, bytes } = asked;
    const reason = finding.kind === "none" ? finding.reason : "found";
    this.#note(journey, way, { status, reason, bytes }, startedUs);
    if (journey.answered(way, finding)) manifest.learn(journey.work);
    this.#advance(journey, this.#options.time.monotonicUs());
  }

  async #fetch({ journey, way }: Task, startedUs: number): Promise<void> {
    const { step } = way;
    if (step.kind !== "fetch") return;
    const { downloads, onSettled } = this.#options;
    const { work } = journey;
    const fetched = await downloads.fetch({ ...step, work, signal: this.#stopping.signal });
    if (fetched.kind === "failed") {
      this.#failed({ journey, way }, fetched, fetched.bytes, startedUs);
      return;
    }
    if (fetched.kind === "redirect") {
      this.#redirected({ journey, way }, fetched, startedUs);
      return;
    }
    const { reason, arrival, status } = fetched;
    const { bytes, sha256 } = arrival;
    this.#note(
      journey,
      way,
      { status, reason, bytes: status === 200 || status === 206 ? bytes : 0, sha256 },
      startedUs,
    );
    this.#open -= 1;
    onSettled?.(work, "done", reason, bytes);
  }

  #redirected(task: Task, { url, status }: { readonly url: string; readonly status: number }, startedUs: number): void {
    const trouble = task.journey.redirected(task.way, url);
    if (trouble === undefined) this.#advance(task.journey, this.#options.time.monotonicUs());
    else this.#failed(task, { ...trouble, status }, 0, startedUs);
  }

  #failed({ journey, way }: Task, trouble: Trouble, bytes: number, startedUs: number): void {
    const { status, reason, message } = trouble;
    const nowUs = this.#options.time.monotonicUs();
    this.#note(journey, way, { status, reason, message, bytes }, startedUs);
    journey.failed(way, trouble, nowUs);
    this.#advance(journey, nowUs);
  }

  /** We did not send it. It waits for its host, unless the work has something better to do meanwhile. */
  #refused(task: Task, lane: string, error: RejectedError): void {
    const { journey, way } = task;
    const nowUs = this.#options.time.monotonicUs();
    this.#options.onPutOff?.(error.host, error.retryAfterMs ?? 0);
    const isProbed = error instanceof BreakerOpenError && error.constraint.limit === PROBE_UNDER_WAY;
    if (error instanceof BusyError || isProbed) {
      // Whoever has the slot, or is the probe, will finish; then it is tried again.
      this.#schedule.park(task, lane, nowUs + SLOT_PAUSE_MS * 1000, nowUs);
      return;
    }
    const waitMs = Math.max(1, error.retryAfterMs ?? SLOT_PAUSE_MS);
    const untilUs = nowUs + waitMs * 1000;
    if (error instanceof BreakerOpenError) journey.movedBack(way, untilUs, true);
    else if (waitMs > LONG_WAIT_MS && journey.hasOther(nowUs)) journey.movedBack(way, untilUs, false);
    else {
      this.#schedule.putBack(task, lane, untilUs, nowUs);
      return;
    }
    this.#advance(journey, nowUs);
  }

  #note(journey: Journey, { step }: Way, attempt: Partial<Attempt> & Pick<Attempt, "reason">, startedUs: number): void {
    const { manifest, run, time, onAttempt } = this.#options;
    const resolver = step.kind === "ask" ? step.resolver.name : step.resolver;
    const elapsedMs = (time.monotonicUs() - startedUs) / 1000;
    const noted: Attempt = { ...attempt, step: step.kind, resolver, url: step.url, elapsedMs };
    manifest.note(run, journey.work.id, noted);
    onAttempt?.(journey.work, noted);
  }

  #giveUp(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#stopping.abort(error);
    this.#ended.reject(error);
  }
}

/** Mistakes of this program, and a manifest that cannot be written, are no trouble of the network's. */
function isOurs(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof ReferenceError || error instanceof SyntaxError || ("errcode" in error && "errstr" in error);
}
