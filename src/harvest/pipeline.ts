import { PROBE_IN_FLIGHT } from "../breaker/denial.ts";
import { BreakerOpenError, BusyError, DownloadError, HubClosedError, RejectedError } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import type { Time, Timer } from "../time/time.ts";
import { type AttemptFailure, failureOf } from "./attempt-failure.ts";
import type { Downloads } from "./downloads/downloads.ts";
import { type HostQueueStatus, hostQueueKey, parseHostQueueKey } from "./host-queue-key.ts";
import { HostQueues } from "./host-queues.ts";
import type { AttemptRecord, ListedWork, Manifest } from "./manifest/manifest.ts";
import type { Reason } from "./reason.ts";
import { Resolution, type ResolutionOptions } from "./resolution.ts";
import { queryResolver } from "./resolver-query.ts";
import type { RobotsGuard } from "./robots-guard.ts";
import type { PendingStep } from "./step.ts";

export interface PipelineOptions extends ResolutionOptions {
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
  readonly onAttempt?: ((work: ListedWork, attempt: AttemptRecord) => void) | undefined;
  /** A request was not let through and comes again; nothing was sent. */
  readonly onDeferred?: ((host: string, waitMs: number) => void) | undefined;
}

interface PipelineTask {
  readonly resolution: Resolution;
  readonly pending: PendingStep;
}

/** A way that would be shut for longer than this is worth trying others before. */
const LONG_WAIT_MS = 30_000;
/** Where every slot is taken, and not by us, there is nobody to be told by: then it is tried again after a while. */
const SLOT_PAUSE_MS = 250;
const WORKS_PER_LOAD = 64;

/**
 * Works on their way, many at a time. Each is a small machine (`Journey`); whose turn it is follows from when hosts are
 * free (`Schedule`); a refusal by the hub is not an error but the time to come back at. Nothing is kept in memory but
 * the works that are open: the list is in the manifest, and so is everything that came of it.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #hostQueues = new HostQueues<PipelineTask>();
  /** Requests under way by lane. */
  readonly #inFlightRequests = new Map<string, number>();
  /** Who else wants the file at an address that is being fetched. */
  readonly #waitingForFetch = new Map<string, PipelineTask[]>();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #open = 0;
  #inFlight = 0;
  #lastId = 0;
  /** More may be listed than there is now. */
  #expectsMoreWorks = true;
  #isStarted = false;
  #isDraining = false;
  #isOver = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Resolves when every work is settled, or when it was drained; rejects when it cannot go on, a disk being full. */
  run(): Promise<void> {
    this.#isStarted = true;
    this.#advanceAll();
    return this.#ended.promise;
  }

  /** Works have been listed. */
  worksAdded(): void {
    this.#advanceAll();
  }

  /** No more works will be listed. */
  inputEnded(): void {
    this.#expectsMoreWorks = false;
    this.#advanceAll();
  }

  /** Lets what is under way come to its end, and begins nothing new. What is not settled stays as it is in the manifest. */
  drain(): void {
    this.#isDraining = true;
    this.#advanceAll();
  }

  /** The same at once: what is under way is given up. */
  stop(): void {
    this.#isDraining = true;
    this.#stopping.abort(new Error("stopped"));
    this.#advanceAll();
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get open(): number {
    return this.#open;
  }

  /** Every lane in which somebody is, the busiest first. */
  queues(): readonly HostQueueStatus[] {
    const nowUs = this.#options.time.monotonicUs();
    const reports = new Map<string, HostQueueStatus>();
    for (const [queue, inFlightRequests] of this.#inFlightRequests)
      reports.set(queue, { ...parseHostQueueKey(queue), inFlightRequests, waiting: 0, freeInMs: 0 });
    for (const { queue, waiting, notBeforeUs } of this.#hostQueues.queues()) {
      const freeInMs = Math.max(0, Math.ceil((notBeforeUs - nowUs) / 1000));
      reports.set(queue, {
        ...parseHostQueueKey(queue),
        inFlightRequests: this.#inFlightRequests.get(queue) ?? 0,
        waiting,
        freeInMs,
      });
    }
    return [...reports.values()].sort((a, b) => b.inFlightRequests + b.waiting - a.inFlightRequests - a.waiting);
  }

  /** Timers and promises lead here, to whom nobody listens: what cannot go on is told by `run`. */
  #advanceAll(): void {
    if (this.#isOver || !this.#isStarted) return;
    try {
      this.#runTurn();
    } catch (error) {
      this.#abort(error);
    }
  }

  #runTurn(): void {
    const { time, workers } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    const nowUs = time.monotonicUs();
    let hasMore = false;
    if (!this.#isDraining) {
      hasMore = this.#loadWorks(nowUs);
      while (this.#inFlight < workers) {
        const taken = this.#hostQueues.take(nowUs);
        if (taken === undefined) break;
        this.#start(taken.task, taken.queue);
      }
    }
    if (hasMore) {
      setImmediate(() => this.#advanceAll());
      return;
    }
    const isDone = this.#isDraining ? this.#inFlight === 0 : this.#open === 0 && !this.#expectsMoreWorks;
    if (isDone) {
      this.#isOver = true;
      this.#ended.resolve();
      return;
    }
    const nextUs = this.#isDraining || this.#inFlight >= workers ? undefined : this.#hostQueues.nextUs();
    // Whoever finishes makes another turn; the timer is for when only time is missing.
    if (nextUs !== undefined)
      this.#timer = time.setTimer(Math.max(0, (nextUs - nowUs) / 1000), () => this.#advanceAll());
  }

  /** True when there may be more to take, and room for it: that is for the next turn, so that others get theirs. */
  #loadWorks(nowUs: number): boolean {
    const { manifest, run, maxOpen } = this.#options;
    const freeSlots = Math.min(WORKS_PER_LOAD, maxOpen - this.#open);
    if (freeSlots <= 0) return false;
    const works = manifest.pending(run, this.#lastId, freeSlots);
    for (const work of works) {
      this.#lastId = work.id;
      this.#open += 1;
      this.#advance(new Resolution(work, this.#options), nowUs);
    }
    return works.length === freeSlots;
  }

  /** Puts the next step of a work in its place, or settles it. */
  #advance(resolution: Resolution, nowUs: number): void {
    const next = resolution.next(nowUs);
    if (next.kind === "over") this.#settle(resolution, next.reason, next.message);
    else
      this.#hostQueues.add(
        { resolution, pending: next.pending },
        hostQueueKey(next.pending),
        next.pending.notBeforeUs,
        nowUs,
      );
  }

  #settle({ work }: Resolution, reason: Reason, message: string | undefined): void {
    this.#options.manifest.fail(work.id, reason, message);
    this.#open -= 1;
    this.#options.onSettled?.(work, "failed", reason, 0);
  }

  #start(task: PipelineTask, queue: string): void {
    const { step } = task.pending;
    const others = step.kind === "fetch" ? this.#waitingForFetch.get(step.url) : undefined;
    if (others !== undefined) {
      others.push(task);
      return;
    }
    if (step.kind === "fetch") this.#waitingForFetch.set(step.url, []);
    this.#inFlight += 1;
    this.#inFlightRequests.set(queue, (this.#inFlightRequests.get(queue) ?? 0) + 1);
    this.#execute(task, queue)
      .catch(error => {
        this.#abort(error);
        return true;
      })
      .then(wasSent => this.#finished(task, queue, wasSent));
  }

  #finished({ pending: { step } }: PipelineTask, queue: string, wasSent: boolean): void {
    const nowUs = this.#options.time.monotonicUs();
    this.#inFlight -= 1;
    const left = (this.#inFlightRequests.get(queue) ?? 1) - 1;
    if (left === 0) this.#inFlightRequests.delete(queue);
    else this.#inFlightRequests.set(queue, left);
    if (step.kind === "fetch") {
      const others = this.#waitingForFetch.get(step.url) ?? [];
      this.#waitingForFetch.delete(step.url);
      for (const other of others) this.#hostQueues.requeue(other, hostQueueKey(other.pending), nowUs, nowUs);
    }
    // Who was refused has freed nothing, and must not wake the others who were.
    if (wasSent) this.#hostQueues.slotFreed(nowUs);
    this.#advanceAll();
  }

  /** True when it was sent, whatever came of it; false when it waits again. */
  async #execute(task: PipelineTask, queue: string): Promise<boolean> {
    const { time } = this.#options;
    const startedUs = time.monotonicUs();
    try {
      if (task.pending.step.kind === "ask") await this.#query(task, startedUs);
      else await this.#fetch(task, startedUs);
    } catch (error) {
      if (this.#stopping.signal.aborted) return true;
      if (error instanceof RejectedError) {
        this.#refused(task, queue, error);
        return false;
      }
      if (error instanceof DownloadError || error instanceof HubClosedError || isInternalError(error)) throw error;
      this.#failed(task, failureOf(error), 0, startedUs);
    }
    return true;
  }

  async #query({ resolution, pending }: PipelineTask, startedUs: number): Promise<void> {
    const { step } = pending;
    if (step.kind !== "ask") return;
    const { signal } = this.#stopping;
    const { robots, manifest } = this.#options;
    const disallowReason = step.request.role === "landing" ? await robots.disallowReason(step.url, signal) : undefined;
    if (disallowReason !== undefined) {
      this.#failed({ resolution, pending }, disallowReason, 0, startedUs);
      return;
    }
    const result = await queryResolver(this.#options, step, signal);
    if (result.kind === "failed") {
      this.#failed({ resolution, pending }, result, result.bytes, startedUs);
      return;
    }
    if (result.kind === "redirect") {
      this.#redirected({ resolution, pending }, result, startedUs);
      return;
    }
    const { finding, status, bytes } = result;
    const reason = finding.kind === "none" ? finding.reason : "found";
    this.#recordAttempt(resolution, pending, { status, reason, bytes }, startedUs);
    if (resolution.answered(pending, finding)) manifest.updateWork(resolution.work);
    this.#advance(resolution, this.#options.time.monotonicUs());
  }

  async #fetch({ resolution, pending }: PipelineTask, startedUs: number): Promise<void> {
    const { step } = pending;
    if (step.kind !== "fetch") return;
    const { downloads, onSettled } = this.#options;
    const { work } = resolution;
    const fetched = await downloads.fetch({ ...step, work, signal: this.#stopping.signal });
    if (fetched.kind === "failed") {
      this.#failed({ resolution, pending }, fetched, fetched.bytes, startedUs);
      return;
    }
    if (fetched.kind === "redirect") {
      this.#redirected({ resolution, pending }, fetched, startedUs);
      return;
    }
    const { reason, arrival, status } = fetched;
    const { bytes, sha256 } = arrival;
    this.#recordAttempt(
      resolution,
      pending,
      { status, reason, bytes: status === 200 || status === 206 ? bytes : 0, sha256 },
      startedUs,
    );
    this.#open -= 1;
    onSettled?.(work, "done", reason, bytes);
  }

  #redirected(
    task: PipelineTask,
    { url, status }: { readonly url: string; readonly status: number },
    startedUs: number,
  ): void {
    const failure = task.resolution.redirected(task.pending, url);
    if (failure === undefined) this.#advance(task.resolution, this.#options.time.monotonicUs());
    else this.#failed(task, { ...failure, status }, 0, startedUs);
  }

  #failed({ resolution, pending }: PipelineTask, failure: AttemptFailure, bytes: number, startedUs: number): void {
    const { status, reason, message } = failure;
    const nowUs = this.#options.time.monotonicUs();
    this.#recordAttempt(resolution, pending, { status, reason, message, bytes }, startedUs);
    resolution.failed(pending, failure, nowUs);
    this.#advance(resolution, nowUs);
  }

  /** We did not send it. It waits for its host, unless the work has something better to do meanwhile. */
  #refused(task: PipelineTask, queue: string, error: RejectedError): void {
    const { resolution, pending } = task;
    const nowUs = this.#options.time.monotonicUs();
    this.#options.onDeferred?.(error.host, error.retryAfterMs ?? 0);
    const isProbeInFlight = error instanceof BreakerOpenError && error.constraint.limit === PROBE_IN_FLIGHT;
    if (error instanceof BusyError || isProbeInFlight) {
      // Whoever has the slot, or is the probe, will finish; then it is tried again.
      this.#hostQueues.requeueUntilSlot(task, queue, nowUs + SLOT_PAUSE_MS * 1000, nowUs);
      return;
    }
    const waitMs = Math.max(1, error.retryAfterMs ?? SLOT_PAUSE_MS);
    const untilUs = nowUs + waitMs * 1000;
    if (error instanceof BreakerOpenError) resolution.defer(pending, untilUs, true);
    else if (waitMs > LONG_WAIT_MS && resolution.hasAlternative(nowUs)) resolution.defer(pending, untilUs, false);
    else {
      this.#hostQueues.requeue(task, queue, untilUs, nowUs);
      return;
    }
    this.#advance(resolution, nowUs);
  }

  #recordAttempt(
    resolution: Resolution,
    { step }: PendingStep,
    attempt: Partial<AttemptRecord> & Pick<AttemptRecord, "reason">,
    startedUs: number,
  ): void {
    const { manifest, run, time, onAttempt } = this.#options;
    const resolver = step.kind === "ask" ? step.resolver.name : step.resolver;
    const elapsedMs = (time.monotonicUs() - startedUs) / 1000;
    const attemptRecord: AttemptRecord = { ...attempt, step: step.kind, resolver, url: step.url, elapsedMs };
    manifest.recordAttempt(run, resolution.work.id, attemptRecord);
    onAttempt?.(resolution.work, attemptRecord);
  }

  #abort(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#stopping.abort(error);
    this.#ended.reject(error);
  }
}

/** Mistakes of this program, and a manifest that cannot be written, are no trouble of the network's. */
function isInternalError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof ReferenceError || error instanceof SyntaxError || ("errcode" in error && "errstr" in error);
}
