import type { RejectedError } from "../errors.ts";
import type { Time } from "../time/time.ts";
import type { AttemptFailure } from "./attempt-failure.ts";
import type { AttemptRecord, ListedWork, Manifest } from "./manifest/manifest.ts";
import type { StoredFile } from "./manifest/manifest-files.ts";
import type { OpenWorks } from "./open-works.ts";
import type { PipelineTask } from "./pipeline-task.ts";
import { decideRefusedStep } from "./refused-step.ts";
import type { Resolution } from "./resolution.ts";
import { keepsRedirects } from "./resolution-progress.ts";
import type { Redirect } from "./resolver-query.ts";
import { ResolverRefusals } from "./resolver-refusals.ts";
import type { ResolverResponse } from "./resolvers/resolver.ts";
import { type FetchStep, type PendingStep, resolverNameOf } from "./step.ts";
import type { StepOutcome, UnsentOutcome } from "./step-runner.ts";

export interface StepResultsOptions {
  readonly manifest: Manifest;
  readonly time: Time;
  readonly run: number;
  /** Whether the file of a work is still there. */
  readonly isPresent: (file: StoredFile) => boolean;
  readonly onAttempt?: ((work: ListedWork, attempt: AttemptRecord) => void) | undefined;
  /** The hub has refused a request, and nothing was sent. The hub may grant it after `waitMs`. */
  readonly onDeferred?: ((host: string, waitMs: number) => void) | undefined;
  /**
   * Milliseconds from now after which a request that a rate limit has refused may be tried again, although its
   * `retryAfterMs` is later; undefined if it is to wait for that. @default always undefined
   */
  readonly retryMs?: ((error: RejectedError) => number | undefined) | undefined;
}

interface FailedStepDetails {
  /** The HTML page that the server has sent instead of the file. */
  readonly page?: ResolverResponse | undefined;
  /** The step of the next try. @default the step that has failed */
  readonly retryAs?: FetchStep | undefined;
}

/** Records how the steps of works have ended, and advances each work: to its next step, or to its end. */
export class StepResults {
  readonly #options: StepResultsOptions;
  readonly #open: OpenWorks;
  readonly #switchedOff: Map<string, string>;
  readonly #refusals = new ResolverRefusals();

  /** @param switchedOff gets the resolvers that refuse this program, with their message */
  constructor(options: StepResultsOptions, open: OpenWorks, switchedOff: Map<string, string>) {
    this.#options = options;
    this.#open = open;
    this.#switchedOff = switchedOff;
  }

  /** @param otherWorks number of other works that the same request was about. @default 0 */
  async apply(
    task: PipelineTask,
    outcome: Exclude<StepOutcome, UnsentOutcome>,
    startedUs: number,
    otherWorks = 0,
  ): Promise<void> {
    const { resolution, pending } = task;
    switch (outcome.kind) {
      case "failed": {
        const page = "page" in outcome ? outcome.page : undefined;
        const retryAs = "retryAs" in outcome ? outcome.retryAs : undefined;
        await this.#failed(task, outcome, outcome.bytes, startedUs, { page, retryAs });
        return;
      }
      case "redirect": {
        const failure = resolution.redirected(pending, outcome);
        if (failure === undefined) await this.#open.advance(resolution, isNewProgress(pending, outcome));
        else await this.#failed(task, { ...failure, status: outcome.status }, 0, startedUs);
        return;
      }
      case "finding": {
        const { finding, status, bytes } = outcome;
        this.#refusals.answered(resolverNameOf(pending.step));
        const reason = finding.kind === "none" ? finding.reason : "found";
        const message =
          otherWorks === 0 ? undefined : `asked together with ${otherWorks} other work${otherWorks === 1 ? "" : "s"}`;
        const attempt = this.#attemptOf(pending, { status, reason, message, bytes }, startedUs);
        if (resolution.applyFinding(pending, finding)) await this.#update(resolution, attempt);
        else {
          await this.#recordAttempt(resolution, attempt);
          await this.#open.advance(resolution, true);
        }
        return;
      }
      case "stored": {
        const { reason, downloaded, attempt } = outcome;
        this.#options.onAttempt?.(resolution.work, attempt);
        if (downloaded.ofSeveral === undefined) {
          this.#open.closed(resolution.work, "done", reason, downloaded.bytes);
          return;
        }
        resolution.stored(downloaded, reason);
        await this.#open.advance(resolution, true);
      }
    }
  }

  /** The outcome of one request for several works. `outcomes` has one for each task, or one for all. */
  async applyBatch(
    tasks: readonly PipelineTask[],
    outcomes: readonly StepOutcome[] | StepOutcome,
    startedUs: number,
  ): Promise<void> {
    for (const [index, task] of tasks.entries()) {
      const outcome = "kind" in outcomes ? outcomes : outcomes[index];
      if (outcome === undefined || outcome.kind === "refused" || outcome.kind === "stopped") continue;
      if (outcome.kind === "failed" && !outcome.mayRetry && this.#mayConcernOneWork(task, outcome)) {
        // One of the works may be the cause.
        task.resolution.repeatAlone(task.pending);
        await this.#open.advance(task.resolution);
      } else await this.apply(task, outcome, startedUs, tasks.length - 1);
    }
  }

  #mayConcernOneWork({ pending }: PipelineTask, { isForAllWorks, status }: AttemptFailure): boolean {
    return isForAllWorks !== true || this.#refusals.mayConcernOneWork(resolverNameOf(pending.step), status);
  }

  /**
   * The hub has refused the request of these tasks. Each step waits for its host, unless its work can do without the step
   * or has another one to try meanwhile.
   */
  async refused(tasks: readonly PipelineTask[], queue: string, error: RejectedError): Promise<void> {
    this.#options.onDeferred?.(error.host, error.retryAfterMs ?? 0);
    // The last one first, because each goes back to the head of its queue.
    for (const task of tasks.toReversed()) await this.#refused(task, queue, error);
  }

  async #refused(task: PipelineTask, queue: string, error: RejectedError): Promise<void> {
    const { resolution, pending } = task;
    const { queues, backlog } = this.#open;
    const clock = this.#open.clock();
    const decision = decideRefusedStep(task, error, clock, this.#options.retryMs?.(error));
    if (decision.kind === "wait-for-slot") {
      queues.requeueUntilSlot(task, queue, decision.untilUs, clock.nowUs);
      return;
    }
    if (decision.kind === "wait") {
      queues.requeue(task, queue, decision.untilUs, clock.nowUs);
      return;
    }
    if (decision.kind === "skip") resolution.skip(pending, decision.message);
    else {
      const { kind, untilUs, message } = decision;
      const isQuota = kind === "quota-spent";
      resolution.defer({ ...pending, waitMessage: message }, untilUs, isQuota ? "rate-limited" : "breaker-open");
      if (isQuota) backlog.block(queue, untilUs, message);
    }
    await this.#open.advance(resolution);
  }

  /**
   * Stores the identifiers and metadata that a resolver has added. If another work of the manifest has one of these
   * identifiers, the two works are merged.
   * @param attempt the request that has given them. @default it is recorded already
   */
  async #update(resolution: Resolution, attempt?: AttemptRecord): Promise<void> {
    const { manifest, run, isPresent, onAttempt } = this.#options;
    const sameWork = await manifest.works.update(resolution.work, attempt && { run, attempt });
    if (attempt !== undefined) onAttempt?.(resolution.work, attempt);
    if (sameWork === undefined) return this.#open.advanceIfWanted(resolution, true);
    const options = { isPresent, progress: resolution.progress(this.#open.clock()) };
    if ((await manifest.works.merge(resolution.work, sameWork, options)) === "merged")
      return this.#open.merged(resolution.work);
    // Another work may still have one of the identifiers.
    return this.#update(resolution);
  }

  async #failed(
    { resolution, pending }: PipelineTask,
    failure: AttemptFailure,
    bytes: number,
    startedUs: number,
    { page, retryAs }: FailedStepDetails = {},
  ): Promise<void> {
    const { status, reason, message } = failure;
    const attempt = this.#attemptOf(pending, { status, reason, message, bytes }, startedUs);
    const resolver = resolverNameOf(pending.step);
    const refusesProgram = failure.isForAllWorks === true && this.#refusals.refused(resolver, status);
    if (refusesProgram && !this.#switchedOff.has(resolver)) this.#switchedOff.set(resolver, message);
    if (
      resolution.failed({ ...pending, step: retryAs ?? pending.step }, failure, this.#options.time.monotonicUs(), page)
    )
      await this.#update(resolution, attempt);
    else {
      await this.#recordAttempt(resolution, attempt);
      await this.#open.advance(resolution, true);
    }
  }

  #attemptOf(
    { step }: PendingStep,
    result: Partial<AttemptRecord> & Pick<AttemptRecord, "reason">,
    startedUs: number,
  ): AttemptRecord {
    const elapsedMs = (this.#options.time.monotonicUs() - startedUs) / 1000;
    return { ...result, step: step.kind, resolver: resolverNameOf(step), url: step.url, elapsedMs };
  }

  async #recordAttempt({ work }: Resolution, attempt: AttemptRecord): Promise<void> {
    const { manifest, run, onAttempt } = this.#options;
    await manifest.recordAttempt(run, work.id, attempt);
    onAttempt?.(work, attempt);
  }
}

/**
 * Whether the progress after a redirect differs from the stored one. It does not if the manifest cannot keep where the
 * redirect has led.
 */
function isNewProgress(pending: PendingStep, { url, setsCookies }: Redirect): boolean {
  return !setsCookies && keepsRedirects({ ...pending, visitedUrls: [...pending.visitedUrls, url] });
}
