import type { Time } from "../time/time.ts";
import { Backlog } from "./backlog.ts";
import { hostQueueKey, isDownloadQueue, isHostQueue, parseHostQueueKey } from "./host-queue-key.ts";
import { HostQueues } from "./host-queues.ts";
import type { ListedWork, Manifest } from "./manifest/manifest.ts";
import type { TakenWork } from "./manifest/manifest-queue.ts";
import { batchOf, type PipelineTask } from "./pipeline-task.ts";
import { isTemporary, type Reason } from "./reason.ts";
import { LONG_WAIT_MS, SLOT_PAUSE_MS } from "./refused-step.ts";
import { Resolution, type ResolutionOptions } from "./resolution.ts";
import { keepsRedirects } from "./resolution-progress.ts";
import type { SecretUrls } from "./secret-urls.ts";
import { filterProblem, type WorkFilter } from "./work-filter.ts";

export type SettledState = "done" | "failed" | "merged";

export interface OpenWorksOptions {
  readonly manifest: Manifest;
  readonly time: Time;
  readonly run: number;
  readonly secretUrls: SecretUrls;
  /** Works that do not match fail with `filtered`. */
  readonly filter: WorkFilter;
  /** Works in memory at a time, in flight or waiting for a host. */
  readonly maxOpen: number;
  /** The longest wait of the run for a spent quota when no other work is left, in milliseconds. */
  readonly maxBreakerWaitMs: number;
  readonly onSettled?: ((work: ListedWork, state: SettledState, reason: Reason, bytes: number) => void) | undefined;
}

const WORKS_PER_LOAD = 128;
const WORKS_PER_TURN = 256;
/**
 * Works in memory for one host, so that a slow host cannot fill the memory. A batch has fewer works. A work that would
 * have to repeat requests if it were put off stays in memory also beyond this number (`#mayStayOpen`).
 */
const OPEN_PER_QUEUE = 128;
const OPEN_PER_QUEUE_MIN = 4;
/**
 * How long a query waits for others that can share its request. `works` is the least number of works in the queues of
 * services. The slowest service needs longer for these than the query waits, so the wait does not make the run longer.
 */
const LINGER = [
  { works: 500, us: 60_000_000 },
  { works: 200, us: 20_000_000 },
  { works: 50, us: 3_000_000 },
] as const;
const FAILED_PER_TURN = 500;
/** The pause before the manifest is asked again for works that it has left to other processes, which may have ended. */
const OTHERS_PAUSE_MS = 5000;

/**
 * The works of a run that are in memory, each with its next step in the queue of a host. Loads them from the manifest,
 * settles them, and returns a work to the manifest if it must wait for long or its host has enough works in memory.
 */
export class OpenWorks {
  readonly queues = new HostQueues<PipelineTask>();
  /** The works of this run in the manifest that wait for their turn, by queue. */
  readonly backlog = new Backlog();
  readonly #options: OpenWorksOptions;
  readonly #resolutionOptions: ResolutionOptions;
  /** How many works one request may name, by queue. As many must be in memory to fill a request. */
  readonly #batchSizes = new Map<string, number>();
  #count = 0;
  #isBacklogKnown = true;
  /** Whether this process may have more than its share: other processes have joined or ended. */
  #isShareKnown = true;
  /**
   * The manifest has left works of a short list to other processes. When only this many works are in memory, the
   * manifest is asked again, because the share of this process may have grown. -1: not asked again.
   */
  #askAgainAt = -1;

  constructor(options: OpenWorksOptions, resolutionOptions: ResolutionOptions) {
    this.#options = options;
    this.#resolutionOptions = resolutionOptions;
  }

  /** Works in memory. */
  get count(): number {
    return this.#count;
  }

  get isEmpty(): boolean {
    return this.#count === 0 && this.backlog.works === 0;
  }

  /** The queue of the first step of a work. */
  queueOf(work: Omit<ListedWork, "id">): string {
    const next = new Resolution({ id: 0, ...work }, this.#resolutionOptions).next(0);
    return "pending" in next ? hostQueueKey(next.pending) : "";
  }

  /**
   * Works were added to the manifest.
   * @param queues how many, by the queue of their next step. @default the manifest is asked
   */
  added(queues?: ReadonlyMap<string, number>): void {
    if (queues === undefined) this.#isBacklogKnown = false;
    else for (const [queue, works] of queues) this.backlog.add(queue, works);
  }

  /** Other processes, or a merge, have changed which works wait in the manifest. */
  changedElsewhere(): void {
    this.#isShareKnown = false;
    this.#forgetBacklog();
  }

  #forgetBacklog(): void {
    // While there is enough to do, the number of works that wait need not be exact.
    if (this.backlog.works < this.#options.maxOpen) this.#isBacklogKnown = false;
  }

  /** When the next waiting step may start; Infinity if none waits. */
  nextUs(nowUs: number): number {
    return Math.min(
      this.queues.nextUs() ?? Number.POSITIVE_INFINITY,
      this.backlog.nextUsAfter(nowUs) ?? Number.POSITIVE_INFINITY,
    );
  }

  /** Loads works from the manifest. True if more can be loaded, in the next turn: one turn must not block the event loop. */
  async load(): Promise<boolean> {
    const { manifest, run, maxOpen } = this.#options;
    if (!this.#isBacklogKnown || this.#count <= this.#askAgainAt) await this.readBacklog();
    if (!this.#isShareKnown) await this.#giveSurplusBack();
    for (let loaded = 0; loaded < WORKS_PER_TURN; ) {
      const isWanted = (name: string) => this.queues.count(name) <= this.#maxOpenIn(name) / 2;
      const queue = this.#count < maxOpen ? this.backlog.take(this.#nowUs, isWanted) : undefined;
      if (queue === undefined) return false;
      const capacity = Math.min(
        WORKS_PER_LOAD,
        maxOpen - this.#count,
        this.#maxOpenIn(queue) - this.queues.count(queue),
      );
      const taken = await manifest.queue.take(run, queue, manifest.queue.nowMs(), capacity);
      this.#count += taken.length;
      if (taken.length === capacity) this.backlog.add(queue, -capacity);
      else {
        const { works, notBeforeMs } = await manifest.queue.waitingIn(run, queue);
        const dueUs = this.#usOf(notBeforeMs);
        const isLeftToOthers = works > 0 && dueUs <= this.#nowUs && this.#count > 0;
        if (isLeftToOthers) this.#askAgainAt = Math.floor(this.#count / 2);
        // A clock that differs from that of the server must not make the pipeline ask the manifest without a pause.
        const pauseMs = isLeftToOthers ? OTHERS_PAUSE_MS : SLOT_PAUSE_MS;
        this.backlog.set(queue, works, Math.max(this.#nowUs + pauseMs * 1000, dueUs));
      }
      loaded += taken.length;
      const clock = this.clock();
      for (const each of taken) {
        const known = this.#options.secretUrls.restored(each.work);
        const resolution = Resolution.restored(known ?? each.work, this.#resolutionOptions, each, clock);
        if (known !== undefined) await this.advanceIfWanted(resolution);
        else await this.#settle(resolution, "url-not-stored", "list the work again, with its complete URL");
      }
    }
    return true;
  }

  /**
   * Gives works back that wait in memory, while a process that has joined later has none. Not a work that another process
   * could not continue, and not many of a batch: one request is about all of them.
   */
  async #giveSurplusBack(): Promise<void> {
    this.#isShareKnown = true;
    const { manifest, run, secretUrls } = this.#options;
    // Works that wait in the manifest are taken by the others first.
    if (this.backlog.works >= this.#count) return;
    const surplus = await manifest.queue.surplus(run);
    const isMovable = (task: PipelineTask) =>
      keepsRedirects(task.pending) && batchOf(task) === undefined && !secretUrls.has(task.resolution.work.key);
    const last = (limit: number, isDownload: boolean) =>
      this.queues.takeLast(limit, (task, queue) => isDownloadQueue(queue) === isDownload && isMovable(task));
    // Of queries a process may take more works than of downloads, and would take them back at once.
    const downloads = last(surplus.downloads, true);
    const queries = last(Math.max(0, surplus.queries - downloads.length), false);
    const given: Promise<void>[] = [];
    for (const { task, queue } of [...downloads, ...queries]) {
      const progress = task.resolution.progress(this.clock(), task.pending);
      if (progress === undefined) this.queues.add(task, queue, 0, this.#nowUs);
      else given.push(this.#putOff(task, queue, progress));
    }
    // At the same time, because the manifest then writes many in one exchange, and no request starts meanwhile.
    await Promise.all(given);
    if (given.length > 0) await manifest.queue.announce();
  }

  /**
   * Limits or circuits have changed. Works that wait for a host that is free now start at once, in memory and in the
   * manifest. A pause before another try of a failed step goes on.
   */
  async endWaits(isFree: (host: string, role: string) => boolean): Promise<void> {
    const { manifest, run } = this.#options;
    const nowUs = this.#nowUs;
    const isQueueFree = (queue: string) => {
      const { host, role } = parseHostQueueKey(queue);
      return isHostQueue(queue) && isFree(host, role);
    };
    const isRefused = ({ pending }: PipelineTask) => pending.waitsFor !== undefined;
    const refused = [...this.queues.refusedQueues(nowUs, isRefused)];
    this.queues.endRefusals(new Set(refused.filter(isQueueFree)), isRefused);
    const later = [...this.backlog.queues()].filter(({ notBeforeUs }) => notBeforeUs > nowUs);
    const free = later.map(({ queue }) => queue).filter(isQueueFree);
    if (free.length === 0) return;
    for (const queue of free) this.backlog.unblock(queue);
    await manifest.queue.endWaits(run, free);
    this.#isBacklogKnown = false;
  }

  async readBacklog(): Promise<void> {
    this.#isBacklogKnown = true;
    this.#askAgainAt = -1;
    this.backlog.clear();
    for (const { queue, works, notBeforeMs } of await this.#options.manifest.queue.waiting(this.#options.run))
      this.backlog.add(queue, works, this.#usOf(notBeforeMs));
  }

  /**
   * Called when only works are left that wait for a spent quota. If none of them may start within `maxBreakerWaitMs`,
   * some of them fail now. True if the number of works has changed: the caller calls again for the others.
   */
  async failQuotaWaits(): Promise<boolean> {
    const { manifest, run, maxBreakerWaitMs, onSettled } = this.#options;
    const nextUs = this.backlog.nextUsAfter(this.#nowUs);
    const untilUs = this.#nowUs + maxBreakerWaitMs * 1000;
    if (nextUs === undefined || nextUs <= untilUs) return false;
    // Another process may have given works back meanwhile that can start: these do not fail.
    const blocked = this.backlog.blockedAfter(untilUs);
    const afterMs = manifest.queue.nowMs() + maxBreakerWaitMs;
    const works = await manifest.queue.takeLater(run, afterMs, blocked, FAILED_PER_TURN);
    if (works.length === 0) return this.#readChangedBacklog();
    for (const { work, message, queue, progress } of works) {
      const text = message ?? this.backlog.messageOf(queue);
      const state = await manifest.fail(work.id, "rate-limited", text, progress);
      onSettled?.(work, state === "done" ? "done" : "failed", "rate-limited", 0);
    }
    this.#isBacklogKnown = false;
    return true;
  }

  /**
   * Other processes have taken the works, or have given back works that can start. These are loaded after a pause, so that
   * the manifest is not asked without end. True if no work waits.
   */
  async #readChangedBacklog(): Promise<boolean> {
    await this.readBacklog();
    const pausedUs = this.#nowUs + SLOT_PAUSE_MS * 1000;
    for (const { queue, waiting, notBeforeUs } of [...this.backlog.queues()])
      this.backlog.set(queue, waiting, Math.max(notBeforeUs, pausedUs));
    return this.backlog.works === 0;
  }

  /** Like `advance`, but settles the work if its metadata does not match the filter. */
  async advanceIfWanted(resolution: Resolution, savesProgress = false): Promise<void> {
    const problem = filterProblem(this.#options.filter, resolution.work.metadata);
    if (problem === undefined) await this.advance(resolution, savesProgress);
    else await this.#settle(resolution, "filtered", problem);
  }

  /**
   * Queues the next step of a work, or settles the work.
   * @param savesProgress records in the manifest that a step has ended. If this process dies, another one does not repeat
   * the step: otherwise works with many steps would never end where processes die often.
   */
  async advance(resolution: Resolution, savesProgress = false): Promise<void> {
    const nowUs = this.#nowUs;
    const next = resolution.next(nowUs);
    if (next.kind === "failed") return this.#settle(resolution, next.reason, next.message);
    if (next.kind === "done") {
      const { work, inherited } = resolution;
      const taken = await this.#options.manifest.complete(work.id, next.reason, next.message, inherited);
      if (taken !== undefined) return this.#inherit(resolution, taken);
      this.closed(work, "done", next.reason, next.bytes);
      return;
    }
    const task = { resolution, pending: next.pending };
    const queue = hostQueueKey(next.pending);
    const { notBeforeUs } = next.pending;
    const isLong = notBeforeUs - nowUs > LONG_WAIT_MS * 1000;
    const isFull = this.queues.count(queue) >= this.#maxOpenIn(queue);
    const progress = isLong || isFull || savesProgress ? resolution.progress(this.clock(), next.pending) : undefined;
    const isKept = progress !== undefined && keepsRedirects(next.pending);
    if ((isLong || isFull) && (isKept || !this.#mayStayOpen(queue, notBeforeUs - nowUs)))
      return this.#putOff(task, queue, progress);
    if (savesProgress && progress !== undefined)
      await this.#options.manifest.saveProgress(resolution.work.id, queue, progress);
    this.queues.add(task, queue, notBeforeUs, nowUs);
    const batch = batchOf(task);
    if (batch !== undefined) this.#batchSizes.set(queue, batch.resolver.batch.maxWorks);
    const undecided = batch === undefined ? 0 : this.#countUndecided(nowUs);
    const linger = batch && LINGER.find(({ works }) => undecided >= works);
    if (linger) this.queues.linger(queue, nowUs + linger.us, batch.resolver.batch.maxWorks, nowUs);
  }

  /**
   * Works that query services, in memory and in the manifest. Those that wait for a download are expected to end with it,
   * and works that wait for a spent quota come later than any query can wait.
   */
  #countUndecided(nowUs: number): number {
    let works = this.#count;
    for (const { queue, waiting } of this.queues.queues()) if (isDownloadQueue(queue)) works -= waiting;
    for (const { queue, waiting, notBeforeUs } of this.backlog.queues())
      if (!isDownloadQueue(queue) && notBeforeUs <= nowUs) works += waiting;
    return works;
  }

  /** The work is settled in the manifest. */
  closed(work: ListedWork, state: SettledState, reason: Reason, bytes: number): void {
    this.#count -= 1;
    this.#options.secretUrls.forget(work.key);
    this.#options.onSettled?.(work, state, reason, bytes);
  }

  clock() {
    return { nowUs: this.#nowUs, wallMs: this.#options.manifest.queue.nowMs() };
  }

  /** How many works of a queue may be in memory. */
  #maxOpenIn(queue: string): number {
    const { maxOpen } = this.#options;
    const share = Math.floor(maxOpen / Math.max(1, this.queues.queueCount));
    const batches = Math.min(maxOpen, 2 * (this.#batchSizes.get(queue) ?? 0));
    return Math.max(OPEN_PER_QUEUE_MIN, batches, Math.min(OPEN_PER_QUEUE, share));
  }

  /**
   * Whether a work that would have to repeat requests if it were put off may wait in memory. Repeated requests would also
   * begin its waits and tries anew, so that in an outage the work would never end.
   */
  #mayStayOpen(queue: string, waitUs: number): boolean {
    const { maxOpen, maxBreakerWaitMs } = this.#options;
    return waitUs <= Math.max(LONG_WAIT_MS, maxBreakerWaitMs) * 1000 && this.queues.count(queue) < maxOpen / 2;
  }

  /** The work goes back to the manifest and is taken again when its step may start. */
  async #putOff({ resolution, pending }: PipelineTask, queue: string, progress: string | undefined): Promise<void> {
    const { manifest } = this.#options;
    const { notBeforeUs, waitMessage: message } = pending;
    const isLater = notBeforeUs > this.#nowUs;
    const notBeforeMs = isLater ? manifest.queue.nowMs() + (notBeforeUs - this.#nowUs) / 1000 : 0;
    const { inherited } = resolution;
    const putOff = { queue, notBeforeMs, progress, message, inherited };
    const taken = await manifest.queue.putOff(resolution.work.id, putOff);
    if (taken !== undefined) {
      resolution.repeat(pending);
      return this.#inherit(resolution, taken);
    }
    this.#count -= 1;
    this.backlog.add(queue, 1, isLater ? notBeforeUs : 0);
  }

  async #settle(resolution: Resolution, reason: Reason, message: string | undefined): Promise<void> {
    const { work } = resolution;
    const progress = isTemporary(reason) ? resolution.progress(this.clock()) : undefined;
    const state = await this.#options.manifest.fail(work.id, reason, message, progress, resolution.inherited);
    if (typeof state === "string") this.closed(work, state, reason, 0);
    else await this.#inherit(resolution, state);
  }

  /** A list or another work has added identifiers or steps meanwhile. */
  async #inherit(resolution: Resolution, { work, inherited }: TakenWork): Promise<void> {
    const known = this.#options.secretUrls.restored(work) ?? resolution.work;
    resolution.inherit(known, inherited, this.clock());
    await this.advanceIfWanted(resolution, true);
  }

  /** The work is merged into another one. If that one waited in the manifest, it is now in the queue "". */
  merged(work: ListedWork): void {
    this.backlog.add("", 1);
    this.#forgetBacklog();
    this.closed(work, "merged", "merged", 0);
  }

  get #nowUs(): number {
    return this.#options.time.monotonicUs();
  }

  /** @param queueMs by the clock of the manifest's queue; 0 for at once */
  #usOf(queueMs: number): number {
    return queueMs === 0 ? 0 : this.#nowUs + (queueMs - this.#options.manifest.queue.nowMs()) * 1000;
  }
}
