import type { Time, Timer } from "../time/time.ts";
import { hostQueueKey, pageQueuesOf } from "./host-queue-key.ts";
import { type HostQueueStatus, hostQueueStatuses } from "./host-queue-status.ts";
import { InFlightRequests } from "./in-flight-requests.ts";
import type { ListedWork, Manifest } from "./manifest/manifest.ts";
import { OpenWorks, type OpenWorksOptions } from "./open-works.ts";
import { type BatchResolver, batchOf, belongsTo, downloadUrl, type PipelineTask } from "./pipeline-task.ts";
import type { ResolutionOptions } from "./resolution.ts";
import { StepResults, type StepResultsOptions } from "./step-results.ts";
import { runBatch, runStep, type StepRunnerOptions } from "./step-runner.ts";

export interface PipelineOptions
  extends Omit<ResolutionOptions, "refusalOf">,
    StepRunnerOptions,
    OpenWorksOptions,
    StepResultsOptions {
  readonly manifest: Manifest;
  readonly time: Time;
  readonly run: number;
  /** Requests in flight at a time, over all hosts. */
  readonly workers: number;
  /** Whether the hub would send a request to the host now. */
  readonly isFree: (host: string, role: string) => boolean;
}

/**
 * Runs many works at a time. `OpenWorks` has the works in memory, each with its next step in the queue of a host; the
 * pipeline starts the steps, `runStep` sends their requests, and `StepResults` records how they ended.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #open: OpenWorks;
  readonly #results: StepResults;
  readonly #inFlight = new InFlightRequests<PipelineTask>();
  /** Aborts the requests in flight. Replaced when requests may be sent again. */
  #requests = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  readonly #switchedOff = new Map<string, string>();
  #timer: Timer | undefined;
  /** False after `inputEnded`. */
  #expectsMoreWorks = true;
  #isStarted = false;
  #isInTurn = false;
  #isTurnDue = false;
  #isEased = false;
  #isDraining = false;
  #isPaused = false;
  #isOverdue = false;
  #isOver = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#open = new OpenWorks(options, { ...options, refusalOf: name => this.#switchedOff.get(name) });
    this.#results = new StepResults(options, this.#open, this.#switchedOff);
  }

  /** Resolves when every work is settled or the pipeline is drained. Rejects if the disk or manifest cannot be written. */
  run(): Promise<void> {
    this.#isStarted = true;
    this.#advanceAll();
    return this.#ended.promise;
  }

  /**
   * The caller has added works to the manifest.
   * @param queues how many, by the queue of their next step. @default the manifest is asked
   */
  worksAdded(queues?: ReadonlyMap<string, number>): void {
    this.#open.added(queues);
    this.#advanceAll();
  }

  /** Other processes have added works to the manifest, given works back, or settled the last ones. */
  worksChanged(): void {
    this.#open.changedElsewhere();
    this.#advanceAll();
  }

  /** Requests to the host were refused until its robots.txt was read. */
  robotsRead(host: string): void {
    for (const queue of pageQueuesOf(host)) this.#open.queues.endRefusal(queue);
    this.#advanceAll();
  }

  /** Limits or circuits have changed: requests that were refused may be sent earlier. */
  limitsEased(): void {
    this.#isEased = true;
    this.#advanceAll();
  }

  /** The queue of the first step of a work. */
  queueOf(work: Omit<ListedWork, "id">): string {
    return this.#open.queueOf(work);
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

  /** Starts no further request until `resume`. Those in flight are finished. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    this.#advanceAll();
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /**
   * The lease on the works is overdue, or was renewed after that. While it is overdue no request is in flight: another
   * process may have the works. Aborted requests are sent again when the lease was renewed.
   */
  setOverdue(isOverdue: boolean): void {
    if (isOverdue === this.#isOverdue) return;
    this.#isOverdue = isOverdue;
    if (isOverdue) this.#requests.abort(new Error("the lease is overdue"));
    else this.#requests = new AbortController();
    this.#advanceAll();
  }

  /** Aborts the requests in flight; the promise of `run` rejects with the error. */
  abort(error: unknown): void {
    // The caller may not have called `run` yet.
    this.#ended.promise.catch(() => undefined);
    this.#abort(error);
  }

  /** Like `drain`, but aborts the requests in flight. */
  stop(): void {
    this.#isDraining = true;
    this.#requests.abort(new Error("stopped"));
    this.#advanceAll();
  }

  get inFlight(): number {
    return this.#inFlight.total;
  }

  /** Works in memory. */
  get openWorks(): number {
    return this.#open.count;
  }

  /** Resolvers that have refused this program, with their message. They are not queried any more. */
  get switchedOff(): ReadonlyMap<string, string> {
    return this.#switchedOff;
  }

  /** Every queue with requests in flight or waiting works, the busiest first. */
  queues(): readonly HostQueueStatus[] {
    return hostQueueStatuses(this.#open.queues, this.#inFlight.byQueue, this.#open.backlog, this.#nowUs);
  }

  get #nowUs(): number {
    return this.#options.time.monotonicUs();
  }

  /** Called by timers and settled promises, which have no caller: errors reject the promise of `run`. */
  #advanceAll(): void {
    this.#isTurnDue = true;
    if (this.#isOver || !this.#isStarted || this.#isInTurn) return;
    this.#isInTurn = true;
    this.#runTurns()
      .catch(error => this.#abort(error))
      .finally(() => {
        this.#isInTurn = false;
        if (this.#isTurnDue) this.#advanceAll();
      });
  }

  async #runTurns(): Promise<void> {
    while (this.#isTurnDue && !this.#isOver) {
      this.#isTurnDue = false;
      await this.#runTurn();
    }
  }

  async #runTurn(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#isEased) {
      this.#isEased = false;
      await this.#open.endWaits(this.#options.isFree);
    }
    if (this.#mayStart && (await this.#loadAndStart())) {
      setImmediate(() => this.#advanceAll());
      return;
    }
    if (await this.#isAtEnd()) {
      this.#isOver = true;
      this.#ended.resolve();
      return;
    }
    if (this.#isPaused || this.#isOverdue) return;
    const isIdle = this.#open.count === 0 && !this.#expectsMoreWorks;
    if (isIdle && !this.#isDraining && (await this.#open.failQuotaWaits())) setImmediate(() => this.#advanceAll());
    else this.#armTimer();
  }

  get #mayStart(): boolean {
    return !this.#isDraining && !this.#isPaused && !this.#isOverdue;
  }

  /** True if more works can be loaded, in the next turn. */
  async #loadAndStart(): Promise<boolean> {
    const { queues } = this.#open;
    const hasMore = await this.#open.load();
    this.#startTasks();
    // No request is in flight, so no result can add a query to a batch that waits.
    if (!hasMore && this.#inFlight.total === 0 && queues.isOnlyLingering(this.#nowUs)) {
      queues.endLinger();
      this.#startTasks();
    }
    return hasMore;
  }

  async #isAtEnd(): Promise<boolean> {
    if (this.#isDraining) return this.#inFlight.total === 0;
    return this.#open.isEmpty && !this.#expectsMoreWorks && (await this.#isFinished());
  }

  /** Other processes may give works back. Then `worksChanged` is called. */
  async #isFinished(): Promise<boolean> {
    const { manifest, run } = this.#options;
    if (await manifest.queue.isFinished(run)) return true;
    await this.#open.readBacklog();
    if (this.#open.backlog.works > 0) this.#isTurnDue = true;
    return false;
  }

  #startTasks(): void {
    const { queues } = this.#open;
    while (this.#mayStart && this.#inFlight.total < this.#options.workers) {
      const taken = queues.take(this.#nowUs);
      if (taken === undefined) return;
      const { task, queue } = taken;
      if (this.#isRefused(task)) {
        task.resolution.drop(task.pending);
        this.#open.advance(task.resolution).then(
          () => this.#advanceAll(),
          error => this.#abort(error),
        );
        continue;
      }
      const batch = batchOf(task);
      const others =
        batch === undefined
          ? []
          : queues.takeMore(queue, batch.resolver.batch.maxWorks - 1, other => belongsTo(other, batch));
      if (batch === undefined || others.length === 0) this.#start(task, queue);
      else this.#startBatch(batch.resolver, [task, ...others], queue);
    }
  }

  /** Whether the resolver has refused this program after the task was queued. */
  #isRefused({ pending: { step } }: PipelineTask): boolean {
    return step.kind === "ask" && this.#switchedOff.has(step.resolver.name);
  }

  /** Every finished request starts a turn; the timer is needed if all queues wait. */
  #armTimer(): void {
    const { time, workers } = this.#options;
    if (this.#isDraining || this.#inFlight.total >= workers) return;
    const nowUs = this.#nowUs;
    const nextUs = this.#open.nextUs(nowUs);
    if (Number.isFinite(nextUs))
      this.#timer = time.setTimer(Math.max(0, (nextUs - nowUs) / 1000), () => this.#advanceAll());
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

  #startBatch(resolver: BatchResolver, tasks: readonly PipelineTask[], queue: string): void {
    const [first] = tasks;
    if (first === undefined) return;
    this.#inFlight.start(first, queue, undefined);
    this.#executeBatch(resolver, tasks, queue)
      .catch(error => {
        this.#abort(error);
        return true;
      })
      .then(wasSent => this.#finished(first, queue, wasSent));
  }

  #finished(task: PipelineTask, queue: string, wasSent: boolean): void {
    const nowUs = this.#nowUs;
    for (const waiting of this.#inFlight.end(queue, downloadUrl(task)))
      this.#open.queues.requeue(waiting, hostQueueKey(waiting.pending), nowUs, nowUs);
    // A refused request has freed no slot, and must not wake the queues that wait for one.
    if (wasSent) this.#open.queues.slotFreed();
    this.#advanceAll();
  }

  /** False if the hub has refused the request. */
  async #execute(task: PipelineTask, queue: string): Promise<boolean> {
    const { resolution, pending } = task;
    const startedUs = this.#nowUs;
    const place = resolution.placeOf(pending);
    const outcome = await runStep(
      this.#options,
      pending.step,
      resolution.work,
      this.#requests.signal,
      startedUs,
      place,
    );
    if (outcome.kind === "refused") await this.#results.refused([task], queue, outcome.error);
    else if (outcome.kind === "stopped") this.#putBack([task], queue);
    else await this.#results.apply(task, outcome, startedUs);
    return outcome.kind !== "refused";
  }

  /** False if the hub has refused the request. */
  async #executeBatch(resolver: BatchResolver, tasks: readonly PipelineTask[], queue: string): Promise<boolean> {
    const startedUs = this.#nowUs;
    const works = tasks.map(({ resolution }) => resolution.work);
    const outcome = await runBatch(this.#options, resolver, works, this.#requests.signal);
    if ("kind" in outcome && outcome.kind === "refused") {
      await this.#results.refused(tasks, queue, outcome.error);
      return false;
    }
    if ("kind" in outcome && outcome.kind === "stopped") this.#putBack(tasks, queue);
    else await this.#results.applyBatch(tasks, outcome, startedUs);
    return true;
  }

  /** Their request was aborted. If the pipeline continues, it is sent again. */
  #putBack(tasks: readonly PipelineTask[], queue: string): void {
    const nowUs = this.#nowUs;
    // The last one first, because each goes back to the head of its queue.
    for (const task of tasks.toReversed()) this.#open.queues.requeue(task, queue, nowUs, nowUs);
  }

  #abort(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#requests.abort(error);
    this.#ended.reject(error);
  }
}
