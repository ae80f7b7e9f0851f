import type { Resolution } from "./resolution.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import type { PendingStep } from "./step.ts";

/** The next step of a work in memory: queued for its host, or being sent. */
export interface PipelineTask {
  readonly resolution: Resolution;
  readonly pending: PendingStep;
}

export type BatchResolver = Resolver & { readonly batch: NonNullable<Resolver["batch"]> };

/** Queries of one resolver and group may share a request. */
export interface QueryBatch {
  readonly resolver: BatchResolver;
  readonly group: string;
}

/** The batch in which a task may share a request; undefined if its query needs a request of its own. */
export function batchOf({ pending: { step, round, isAlone } }: PipelineTask): QueryBatch | undefined {
  if (step.kind !== "ask" || round > 0 || isAlone === true || step.url !== step.request.url) return undefined;
  const { resolver } = step;
  const group = resolver.batch?.groupOf(step.about);
  return group === undefined ? undefined : { resolver: resolver as BatchResolver, group };
}

/** Whether a task may share the request of a batch. */
export function belongsTo(task: PipelineTask, { resolver, group }: QueryBatch): boolean {
  const own = batchOf(task);
  return own?.resolver === resolver && own.group === group;
}

/** The URL of a download, which is sent once for all works that need it; undefined for a query. */
export function downloadUrl({ pending: { step } }: PipelineTask): string | undefined {
  return step.kind === "fetch" ? step.url : undefined;
}
