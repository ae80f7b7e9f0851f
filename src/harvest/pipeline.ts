import type { RejectedError } from "../errors.ts";
import type { Time, Timer } from "../time/time.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import { Backlog } from "./backlog.ts";
import { hostQueueKey } from "./host-queue-key.ts";
import { type HostQueueStatus, hostQueueStatuses } from "./host-queue-status.ts";
import { HostQueues } from "./host-queues.ts";
import { InFlightRequests } from "./in-flight-requests.ts";
import type { AttemptRecord, ListedWork, Manifest } from "./manifest/manifest.ts";
import { type BatchResolver, batchOf, belongsTo, downloadUrl, type PipelineTask } from "./pipeline-task.ts";
import type { Reason } from "./reason.ts";
import { decideRefusedStep, LONG_WAIT_MS, SLOT_PAUSE_MS } from "./refused-step.ts";
import { Resolution, type ResolutionOptions } from "./resolution.ts";
import type { ResolverResponse } from "./resolvers/resolver.ts";
import type { SecretUrls } from "./secret-urls.ts";
import { type PendingStep, resolverNameOf } from "./step.ts";
import { runBatch, runStep, type StepOutcome, type StepRunnerOptions, type UnsentOutcome } from "./step-runner.ts";
import { filterProblem, type WorkFilter } from "./work-filter.ts";

export type SettledState = "done" | "failed" | "merged";

export interface PipelineOptions extends Omit<ResolutionOptions, "refusalOf">, StepRunnerOptions {
  readonly manifest: Manifest;
  readonly time: Time;
  readonly run: number;
  readonly secretUrls: SecretUrls;
  /** Works that do not match fail with `filtered`. */
  readonly filter: WorkFilter;
  /** Requests in flight at a time, over all hosts. */
  readonly workers: number;
  /** Works in memory at a time, in flight or waiting for a host. */
  readonly maxOpen: number;
  readonly onSettled?: ((work: ListedWork, state: SettledState, reason: Reason, bytes: number) => void) | undefined;
  readonly onAttempt?: ((work: ListedWork, attempt: AttemptRecord) => void) | undefined;
  /** The hub has refused a request, which will be tried again after `waitMs`; nothing was sent. */
  readonly onDeferred?: ((host: string, waitMs: number) => void) | undefined;
}

const WORKS_PER_LOAD = 128;
const WORKS_PER_TURN = 256;
/** Works in memory for one host, so that a slow host cannot fill the memory. More than a batch has. */
const OPEN_PER_QUEUE = 128;
const OPEN_PER_QUEUE_MIN = 4;
/** How long a query waits for others that can share its request, by how many works are unfinished. */
const LINGER = [
  { works: 2000, us: 60_000_000 },
  { works: 500, us: 20_000_000 },
  { works: 50, us: 3_000_000 },
] as const;
const ENDED_PER_TURN = 500;

/**
 * Runs many works at a time. `Resolution` decides the next step of a work, `Backlog` from which queue works are taken,
 * `HostQueues` which step starts next, `runStep` sends its request, and the pipeline records the outcome in the manifest.
 * A work that must wait for long, or whose host has enough works in memory, goes back to the manifest.
 */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #resolutionOptions: ResolutionOptions;
  readonly #backlog = new Backlog();
  readonly #hostQueues = new HostQueues<PipelineTask>();
  readonly #inFlight = new InFlightRequests<PipelineTask>();
  readonly #stopping = new AbortController();
  readonly #ended = Promise.withResolvers<void>();
  readonly #switchedOff = new Map<string, string>();
  /** How many works one request may name, by queue: so many must be in memory to fill a request. */
  readonly #batchSizes = new Map<string, number>();
  #timer: Timer | undefined;
  #open = 0;
  /** False after `inputEnded`. */
  #expectsMoreWorks = true;
  #isBacklogKnown = true;
  #isStarted = false;
  #isInTurn = false;
  #isTurnDue = false;
  #isDraining = false;
  #isPaused = false;
  #isOver = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#resolutionOptions = { ...options, refusalOf: name => this.#switchedOff.get(name) };
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
    if (queues === undefined) this.#isBacklogKnown = false;
    else for (const [queue, works] of queues) this.#backlog.add(queue, works);
    this.#advanceAll();
  }

  /** Other processes have added works to the manifest, given works back, or settled the last ones. */
  worksChanged(): void {
    // While there is enough to do, the number of works that wait need not be exact.
    if (this.#backlog.works < this.#options.maxOpen) this.#isBacklogKnown = false;
    this.#advanceAll();
  }

  /** The queue of the first step of a work. */
  queueOf(work: Omit<ListedWork, "id">): string {
    const next = new Resolution({ id: 0, ...work }, this.#resolutionOptions).next(0);
    return "pending" in next ? hostQueueKey(next.pending) : "";
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

  /** Aborts the requests in flight; the promise of `run` rejects with the error. */
  abort(error: unknown): void {
    // The caller may not have called `run` yet.
    this.#ended.promise.catch(() => undefined);
    this.#abort(error);
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

  /** Works in memory. */
  get open(): number {
    return this.#open;
  }

  /** Works of this run in the manifest that wait for their turn. */
  get waiting(): number {
    return this.#backlog.works;
  }

  /** Resolvers that have refused this program, with their message. They are not queried any more. */
  get switchedOff(): ReadonlyMap<string, string> {
    return this.#switchedOff;
  }

  /** Every queue with requests in flight or waiting works, the busiest first. */
  queues(): readonly HostQueueStatus[] {
    return hostQueueStatuses(this.#hostQueues, this.#inFlight.byQueue, this.#backlog, this.#nowUs);
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
    let hasMore = false;
    if (!this.#isDraining && !this.#isPaused) {
      hasMore = await this.#loadWorks();
      this.#startTasks();
      // Nothing is under way that could join a waiting batch.
      if (!hasMore && this.#inFlight.total === 0 && this.#hostQueues.isOnlyLingering(this.#nowUs)) {
        this.#hostQueues.endLinger();
        this.#startTasks();
      }
    }
    if (hasMore) {
      setImmediate(() => this.#advanceAll());
      return;
    }
    const isIdle = this.#open === 0 && !this.#expectsMoreWorks;
    const isEmpty = isIdle && this.#backlog.works === 0;
    if (this.#isDraining ? this.#inFlight.total === 0 : isEmpty && (await this.#isFinished())) {
      this.#isOver = true;
      this.#ended.resolve();
      return;
    }
    if (this.#isPaused) return;
    if (isIdle && !this.#isDraining && (await this.#endPatience())) return;
    this.#armTimer();
  }

  /** Works that other processes have may come back: then `worksChanged` is called. */
  async #isFinished(): Promise<boolean> {
    const { manifest, run } = this.#options;
    if (await manifest.queue.isFinished(run)) return true;
    await this.#readBacklog();
    if (this.#backlog.works > 0) this.#isTurnDue = true;
    return false;
  }

  #startTasks(): void {
    while (this.#inFlight.total < this.#options.workers) {
      const taken = this.#hostQueues.take(this.#nowUs);
      if (taken === undefined) return;
      const { task, queue } = taken;
      if (this.#isRefused(task)) {
        task.resolution.drop(task.pending);
        this.#advance(task.resolution).catch(error => this.#abort(error));
        this.#isTurnDue = true;
        continue;
      }
      const batch = batchOf(task);
      const others =
        batch === undefined
          ? []
          : this.#hostQueues.takeMore(queue, batch.resolver.batch.maxWorks - 1, other => belongsTo(other, batch));
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
    const nextUs = Math.min(
      this.#hostQueues.nextUs() ?? Number.POSITIVE_INFINITY,
      this.#backlog.nextUsAfter(nowUs) ?? Number.POSITIVE_INFINITY,
    );
    if (Number.isFinite(nextUs))
      this.#timer = time.setTimer(Math.max(0, (nextUs - nowUs) / 1000), () => this.#advanceAll());
  }

  /** True if more works can be loaded; they are left to the next turn, so that the event loop is not blocked. */
  async #loadWorks(): Promise<boolean> {
    const { manifest, run, maxOpen, time } = this.#options;
    if (!this.#isBacklogKnown) await this.#readBacklog();
    for (let loaded = 0; loaded < WORKS_PER_TURN; ) {
      const isWanted = (name: string) => this.#hostQueues.count(name) <= this.#mostIn(name) / 2;
      const queue = this.#open < maxOpen ? this.#backlog.take(this.#nowUs, isWanted) : undefined;
      if (queue === undefined) return false;
      const room = Math.min(WORKS_PER_LOAD, maxOpen - this.#open, this.#mostIn(queue) - this.#hostQueues.count(queue));
      const taken = await manifest.queue.take(run, queue, time.wallMs(), room);
      if (taken.length === room) this.#backlog.add(queue, -room);
      else {
        const { works, notBeforeMs } = await manifest.queue.waitingIn(run, queue);
        // A clock that was set back must not make the pipeline ask the manifest without a pause.
        const soonestUs = this.#nowUs + SLOT_PAUSE_MS * 1000;
        this.#backlog.set(queue, works, Math.max(soonestUs, this.#usOfWall(notBeforeMs)));
      }
      this.#open += taken.length;
      loaded += taken.length;
      const clock = this.#clock();
      for (const { work, progress } of taken) {
        const known = this.#options.secretUrls.restored(work);
        const resolution = Resolution.restored(known ?? work, this.#resolutionOptions, progress, clock);
        if (known !== undefined) await this.#advanceIfWanted(resolution);
        else await this.#settle(resolution, "url-not-stored", "list the work again, with its complete URL");
      }
    }
    return true;
  }

  async #readBacklog(): Promise<void> {
    this.#isBacklogKnown = true;
    this.#backlog.clear();
    for (const { queue, works, notBeforeMs } of await this.#options.manifest.queue.waiting(this.#options.run))
      this.#backlog.add(queue, works, this.#usOfWall(notBeforeMs));
  }

  /** How many works of a queue may be in memory. */
  #mostIn(queue: string): number {
    const { maxOpen } = this.#options;
    const share = Math.floor(maxOpen / Math.max(1, this.#hostQueues.queueCount));
    const batches = Math.min(maxOpen, 2 * (this.#batchSizes.get(queue) ?? 0));
    return Math.max(OPEN_PER_QUEUE_MIN, batches, Math.min(OPEN_PER_QUEUE, share));
  }

  /**
   * Only works that wait for a quota are left. If the first of them may start only after the patience of the run, they
   * fail. True if there are more of them.
   */
  async #endPatience(): Promise<boolean> {
    const { manifest, run, maxBreakerWaitMs, onSettled } = this.#options;
    const nextUs = this.#backlog.nextUsAfter(this.#nowUs);
    if (nextUs === undefined || nextUs - this.#nowUs <= maxBreakerWaitMs * 1000) return false;
    const works = await manifest.queue.takeAny(run, ENDED_PER_TURN);
    for (const { work, message, queue } of works) {
      await manifest.fail(work.id, "rate-limited", message ?? this.#backlog.messageOf(queue), undefined, true);
      onSettled?.(work, "failed", "rate-limited", 0);
    }
    this.#isBacklogKnown = false;
    setImmediate(() => this.#advanceAll());
    return true;
  }

  /** Settles the work if its metadata does not match the filter. */
  async #advanceIfWanted(resolution: Resolution): Promise<void> {
    const problem = filterProblem(this.#options.filter, resolution.work.metadata);
    await (problem === undefined ? this.#advance(resolution) : this.#settle(resolution, "filtered", problem));
  }

  /** Queues the next step of a work, or settles the work. */
  async #advance(resolution: Resolution): Promise<void> {
    const nowUs = this.#nowUs;
    const next = resolution.next(nowUs);
    if (next.kind === "finished") return this.#settle(resolution, next.reason, next.message);
    if (next.kind === "complete") {
      await this.#options.manifest.complete(resolution.work.id, next.reason, next.message);
      this.#closed(resolution.work, "done", next.reason, next.bytes);
      return;
    }
    const task = { resolution, pending: next.pending };
    const queue = hostQueueKey(next.pending);
    const { notBeforeUs } = next.pending;
    const isLong = notBeforeUs - nowUs > LONG_WAIT_MS * 1000;
    if (isLong || this.#hostQueues.count(queue) >= this.#mostIn(queue)) return this.#putOff(task, queue);
    this.#hostQueues.add(task, queue, notBeforeUs, nowUs);
    const batch = batchOf(task);
    if (batch !== undefined) this.#batchSizes.set(queue, batch.resolver.batch.maxWorks);
    const unfinished = this.#open + this.#backlog.works;
    const linger = batch && LINGER.find(({ works }) => unfinished >= works);
    if (linger) this.#hostQueues.linger(queue, nowUs + linger.us, batch.resolver.batch.maxWorks, nowUs);
  }

  /** The work goes back to the manifest and is taken again when its step may start. */
  async #putOff({ resolution, pending }: PipelineTask, queue: string): Promise<void> {
    const { manifest, time } = this.#options;
    const { notBeforeUs, waitMessage: message } = pending;
    const isLater = notBeforeUs > this.#nowUs;
    const notBeforeMs = isLater ? time.wallMs() + (notBeforeUs - this.#nowUs) / 1000 : 0;
    const progress = resolution.progress(this.#clock(), pending);
    await manifest.queue.putOff(resolution.work.id, { queue, notBeforeMs, progress, message });
    this.#open -= 1;
    this.#backlog.add(queue, 1, isLater ? notBeforeUs : 0);
  }

  async #settle(resolution: Resolution, reason: Reason, message: string | undefined): Promise<void> {
    const { work } = resolution;
    const isTemporary = reason === "rate-limited" || reason === "breaker-open";
    const progress = isTemporary ? resolution.progress(this.#clock()) : undefined;
    await this.#options.manifest.fail(work.id, reason, message, progress);
    this.#closed(work, "failed", reason, 0);
  }

  #closed(work: ListedWork, state: SettledState, reason: Reason, bytes: number): void {
    this.#open -= 1;
    this.#options.secretUrls.forget(work.key);
    this.#options.onSettled?.(work, state, reason, bytes);
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
      this.#hostQueues.requeue(waiting, hostQueueKey(waiting.pending), nowUs, nowUs);
    // A refused request has freed no slot, and must not wake the queues that wait for one.
    if (wasSent) this.#hostQueues.slotFreed();
    this.#advanceAll();
  }

  /** False if the hub has refused the request. */
  async #execute(task: PipelineTask, queue: string): Promise<boolean> {
    const { resolution, pending } = task;
    const startedUs = this.#nowUs;
    const place = resolution.placeOf(pending);
    const outcome = await runStep(this.#options, pending.step, resolution.work, this.#stopping.signal, place);
    if (outcome.kind === "refused") await this.#refused(task, queue, outcome.error);
    else if (outcome.kind !== "stopped") await this.#apply(task, outcome, startedUs);
    return outcome.kind !== "refused";
  }

  /** False if the hub has refused the request. */
  async #executeBatch(resolver: BatchResolver, tasks: readonly PipelineTask[], queue: string): Promise<boolean> {
    const startedUs = this.#nowUs;
    const works = tasks.map(({ resolution }) => resolution.work);
    const outcome = await runBatch(this.#options, resolver, works, this.#stopping.signal);
    if ("kind" in outcome && outcome.kind === "refused") {
      // The last one first, because each goes back to the head of its queue.
      for (const task of tasks.toReversed()) await this.#refused(task, queue, outcome.error);
      return false;
    }
    if ("kind" in outcome && outcome.kind === "stopped") return true;
    for (const [index, task] of tasks.entries()) {
      const result = "kind" in outcome ? outcome : outcome[index];
      if (result === undefined) continue;
      if (result.kind === "failed" && !result.mayRetry && result.isForAllWorks !== true) {
        // One of the works may be the cause.
        task.resolution.repeatAlone(task.pending);
        await this.#advance(task.resolution);
      } else await this.#apply(task, result, startedUs, `asked together with ${tasks.length - 1} other works`);
    }
    return true;
  }

  async #apply(
    task: PipelineTask,
    outcome: Exclude<StepOutcome, UnsentOutcome>,
    startedUs: number,
    message?: string,
  ): Promise<void> {
    const { resolution, pending } = task;
    switch (outcome.kind) {
      case "failed":
        await this.#failed(task, outcome, outcome.bytes, startedUs, "page" in outcome ? outcome.page : undefined);
        return;
      case "redirect": {
        const failure = resolution.redirected(pending, outcome);
        if (failure === undefined) await this.#advance(resolution);
        else await this.#failed(task, { ...failure, status: outcome.status }, 0, startedUs);
        return;
      }
      case "finding": {
        const { finding, status, bytes } = outcome;
        const reason = finding.kind === "none" ? finding.reason : "found";
        await this.#recordAttempt(resolution, pending, { status, reason, message, bytes }, startedUs);
        if (resolution.applyFinding(pending, finding)) await this.#update(resolution);
        else await this.#advance(resolution);
        return;
      }
      case "stored": {
        const { reason, downloaded, status } = outcome;
        const { bytes, sha256 } = downloaded;
        const bytesSent = status === 200 || status === 206 ? bytes : 0;
        await this.#recordAttempt(resolution, pending, { status, reason, bytes: bytesSent, sha256 }, startedUs);
        if (downloaded.ofSeveral === undefined) {
          this.#closed(resolution.work, "done", reason, bytes);
          return;
        }
        resolution.stored(downloaded, reason);
        const progress = resolution.progress(this.#clock());
        await this.#options.manifest.saveProgress(resolution.work.id, progress);
        await this.#advance(resolution);
      }
    }
  }

  /** Stores what a resolver has added. If it names another work of the manifest, the two are one. */
  async #update(resolution: Resolution): Promise<void> {
    const { manifest } = this.#options;
    const same = await manifest.works.update(resolution.work);
    if (same === undefined) return this.#advanceIfWanted(resolution);
    if (!(await manifest.works.merge(resolution.work, same))) return this.#update(resolution);
    this.#closed(resolution.work, "merged", "merged", 0);
  }

  async #failed(
    { resolution, pending }: PipelineTask,
    failure: AttemptFailure,
    bytes: number,
    startedUs: number,
    page?: ResolverResponse,
  ): Promise<void> {
    const { status, reason, message } = failure;
    await this.#recordAttempt(resolution, pending, { status, reason, message, bytes }, startedUs);
    const resolver = resolverNameOf(pending.step);
    if (failure.isForAllWorks === true && !this.#switchedOff.has(resolver)) this.#switchedOff.set(resolver, message);
    if (resolution.failed(pending, failure, this.#nowUs, page)) await this.#update(resolution);
    else await this.#advance(resolution);
  }

  /** The step waits for its host, unless the work can do without it or has another step to try meanwhile. */
  async #refused(task: PipelineTask, queue: string, error: RejectedError): Promise<void> {
    const { resolution, pending } = task;
    this.#options.onDeferred?.(error.host, error.retryAfterMs ?? 0);
    const clock = this.#clock();
    const decision = decideRefusedStep(task, error, clock);
    if (decision.kind === "wait-for-slot") {
      this.#hostQueues.requeueUntilSlot(task, queue, decision.untilUs, clock.nowUs);
      return;
    }
    if (decision.kind === "wait") {
      this.#hostQueues.requeue(task, queue, decision.untilUs, clock.nowUs);
      return;
    }
    if (decision.kind === "skip") resolution.skip(pending, decision.message);
    else if (decision.message === undefined) resolution.defer(pending, decision.untilUs, "breaker-open");
    else {
      resolution.defer({ ...pending, waitMessage: decision.message }, decision.untilUs, "rate-limited");
      this.#backlog.block(queue, decision.untilUs, decision.message);
    }
    await this.#advance(resolution);
  }

  async #recordAttempt(
    resolution: Resolution,
    { step }: PendingStep,
    attempt: Partial<AttemptRecord> & Pick<AttemptRecord, "reason">,
    startedUs: number,
  ): Promise<void> {
    const { manifest, run, onAttempt } = this.#options;
    const elapsedMs = (this.#nowUs - startedUs) / 1000;
    const resolver = resolverNameOf(step);
    const attemptRecord: AttemptRecord = { ...attempt, step: step.kind, resolver, url: step.url, elapsedMs };
    await manifest.recordAttempt(run, resolution.work.id, attemptRecord);
    onAttempt?.(resolution.work, attemptRecord);
  }

  #clock() {
    return { nowUs: this.#nowUs, wallMs: this.#options.time.wallMs() };
  }

  #usOfWall(wallMs: number): number {
    return wallMs === 0 ? 0 : this.#nowUs + (wallMs - this.#options.time.wallMs()) * 1000;
  }

  #abort(error: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer?.cancel();
    this.#stopping.abort(error);
    this.#ended.reject(error);
  }
}
