import { PROBE_IN_FLIGHT } from "../breaker/denial.ts";
import { BreakerOpenError, BusyError, type RejectedError } from "../errors.ts";
import type { Time, Timer } from "../time/time.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import { hostQueueKey } from "./host-queue-key.ts";
import { type HostQueueStatus, hostQueueStatuses } from "./host-queue-status.ts";
import { HostQueues } from "./host-queues.ts";
import { InFlightRequests } from "./in-flight-requests.ts";
import type { AttemptRecord, ListedWork, Manifest } from "./manifest/manifest.ts";
import type { Reason } from "./reason.ts";
import { Resolution, type ResolutionOptions } from "./resolution.ts";
import type { PendingStep } from "./step.ts";
import { runStep, type StepOutcome, type StepRunnerOptions } from "./step-runner.ts";

export interface PipelineOptions extends ResolutionOptions, StepRunnerOptions {
  readonly manifest: Manifest;
  readonly time: Time;
  readonly run: number;
  /** Requests in flight at a time, over all hosts. */
  readonly workers: number;
  /** Works in memory at a time, in flight or waiting for a host. */
  readonly maxOpen: number;
  readonly onSettled?:
    | ((work: ListedWork, state: "done" | "failed", reason: Reason, bytes: number) => void)
    | undefined;
  readonly onAttempt?: ((work: ListedWork, attempt: AttemptRecord) => void) | undefined;
  /** The hub has refused a request, which will be tried again after `waitMs`; nothing was sent. */
  readonly onDeferred?: ((host: string, waitMs: number) => void) | undefined;
}

interface PipelineTask {
  readonly resolution: Resolution;
  readonly pending: PendingStep;
}

/** If a rate limit delays a step for longer, the work tries its other steps first. */
const LONG_WAIT_MS = 30_000;
/** How often to try again while every slot is in use: other users of the hub do not report when they free one. */
const SLOT_PAUSE_MS = 250;
const WORKS_PER_LOAD = 64;

/**
 * Runs many works at a time. `Resolution` decides the next step of a work, `HostQueues` decides which step starts next,
 * `runStep` sends its request, and the pipeline records the outcome in the manifest. A refusal by the hub says when to
 * try again. Only open works are in memory; the list of works is in the manifest.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #hostQueues = new HostQueues<PipelineTask>();
  readonly #inFlight = new InFlightRequests<PipelineTask>();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #open = 0;
  #lastId = 0;
  /** False after `inputEnded`. */
  #expectsMoreWorks = true;
  #isStarted = false;
  #isDraining = false;
  #isOver = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Resolves when every work is settled or the pipeline is drained. Rejects if the disk or manifest cannot be written. */
  run(): Promise<void> {
    this.#isStarted = true;
    this.#advanceAll();
    return this.#ended.promise;
  }

  /** The caller has added works to the manifest. */
  worksAdded(): void {
    this.#advanceAll();
  }

  /** The caller will add no more works. */
  inputEnded(): void {
    this.#expectsMoreWorks = false;
    this.#advanceAll();
  }

  /** Starts no further request and ends after those in flight. Unsettled works stay pending in the manifest. */
  drain(): void {
    this.#isDraining = true;
    this.#advanceAll();
  }

  /** Like `drain`, but aborts the requests in flight. */
  stop(): void {
    this.#isDraining = true;
    this.#stopping.abort(new Error("stopped"));
    this.#advanceAll();
  }

  get inFlight(): number {
    return this.#inFlight.total;
  }

  get open(): number {
    return this.#open;
  }

  /** Every queue with requests in flight or waiting works, the busiest first. */
  queues(): readonly HostQueueStatus[] {
    return hostQueueStatuses(this.#hostQueues, this.#inFlight.byQueue, this.#options.time.monotonicUs());
  }

  /** Called by timers and settled promises, which have no caller: errors reject the promise of `run`. */
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
      while (this.#inFlight.total < workers) {
        const taken = this.#hostQueues.take(nowUs);
        if (taken === undefined) break;
        this.#start(taken.task, taken.queue);
      }
    }
    if (hasMore) {
      setImmediate(() => this.#advanceAll());
      return;
    }
    const isDone = this.#isDraining ? this.#inFlight.total === 0 : this.#open === 0 && !this.#expectsMoreWorks;
    if (isDone) {
      this.#isOver = true;
      this.#ended.resolve();
      return;
    }
    const nextUs = this.#isDraining || this.#inFlight.total >= workers ? undefined : this.#hostQueues.nextUs();
    // Every finished request starts a turn; the timer is needed if all queues wait.
    if (nextUs !== undefined)
      this.#timer = time.setTimer(Math.max(0, (nextUs - nowUs) / 1000), () => this.#advanceAll());
  }

  /** True if more works can be loaded; they are left to the next turn, so that the event loop is not blocked. */
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

  /** Queues the next step of a work, or settles the work. */
  #advance(resolution: Resolution, nowUs: number): void {
    const next = resolution.next(nowUs);
    if (next.kind === "finished") this.#settle(resolution, next.reason, next.message);
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
    if (!this.#inFlight.start(task, queue, downloadUrl(task))) return;
    this.#execute(task, queue)
      .catch(error => {
        this.#abort(error);
        return true;
      })
      .then(wasSent => this.#finished(task, queue, wasSent));
  }

  #finished(task: PipelineTask, queue: string, wasSent: boolean): void {
    const nowUs = this.#options.time.monotonicUs();
    for (const waiting of this.#inFlight.end(queue, downloadUrl(task)))
      this.#hostQueues.requeue(waiting, hostQueueKey(waiting.pending), nowUs, nowUs);
    // A refused request has freed no slot, and must not wake the queues that wait for one.
    if (wasSent) this.#hostQueues.slotFreed(nowUs);
    this.#advanceAll();
  }

  /** False if the hub has refused the request. */
  async #execute(task: PipelineTask, queue: string): Promise<boolean> {
    const { resolution, pending } = task;
    const startedUs = this.#options.time.monotonicUs();
    const outcome = await runStep(this.#options, pending.step, resolution.work, this.#stopping.signal);
    if (outcome.kind === "refused") this.#refused(task, queue, outcome.error);
    else this.#apply(task, outcome, startedUs);
    return outcome.kind !== "refused";
  }

  #apply(task: PipelineTask, outcome: Exclude<StepOutcome, { readonly kind: "refused" }>, startedUs: number): void {
    const { resolution, pending } = task;
    const { manifest, time, onSettled } = this.#options;
    switch (outcome.kind) {
      // The work stays pending in the manifest.
      case "stopped":
        return;
      case "failed":
        this.#failed(task, outcome, outcome.bytes, startedUs);
        return;
      case "redirect": {
        const failure = resolution.redirected(pending, outcome.url);
        if (failure === undefined) this.#advance(resolution, time.monotonicUs());
        else this.#failed(task, { ...failure, status: outcome.status }, 0, startedUs);
        return;
      }
      case "finding": {
        const { finding, status, bytes } = outcome;
        const reason = finding.kind === "none" ? finding.reason : "found";
        this.#recordAttempt(resolution, pending, { status, reason, bytes }, startedUs);
        if (resolution.applyFinding(pending, finding)) manifest.updateWork(resolution.work);
        this.#advance(resolution, time.monotonicUs());
        return;
      }
      case "stored": {
        const { reason, downloaded, status } = outcome;
        const { bytes, sha256 } = downloaded;
        const bytesSent = status === 200 || status === 206 ? bytes : 0;
        this.#recordAttempt(resolution, pending, { status, reason, bytes: bytesSent, sha256 }, startedUs);
        this.#open -= 1;
        onSettled?.(resolution.work, "done", reason, bytes);
      }
    }
  }

  #failed({ resolution, pending }: PipelineTask, failure: AttemptFailure, bytes: number, startedUs: number): void {
    const { status, reason, message } = failure;
    const nowUs = this.#options.time.monotonicUs();
    this.#recordAttempt(resolution, pending, { status, reason, message, bytes }, startedUs);
    resolution.failed(pending, failure, nowUs);
    this.#advance(resolution, nowUs);
  }

  /** The step waits for its host, unless the work has another step to try meanwhile. */
  #refused(task: PipelineTask, queue: string, error: RejectedError): void {
    const { resolution, pending } = task;
    const nowUs = this.#options.time.monotonicUs();
    this.#options.onDeferred?.(error.host, error.retryAfterMs ?? 0);
    const isProbeInFlight = error instanceof BreakerOpenError && error.constraint.limit === PROBE_IN_FLIGHT;
    if (error instanceof BusyError || isProbeInFlight) {
      // Tried again when the request that has the slot, or the probe of the circuit, ends.
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

/** The URL of a download, which is sent once for all works that need it; undefined for a query. */
function downloadUrl({ pending: { step } }: PipelineTask): string | undefined {
  return step.kind === "fetch" ? step.url : undefined;
}
