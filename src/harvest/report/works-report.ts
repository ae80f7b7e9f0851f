import type { Manifest } from "../manifest/manifest.ts";
import type { FailedWork, FileKindCount, ManifestReport, ResolverWorkload } from "../manifest/manifest-reports.ts";

/** A resolver with its works and its requests. */
export interface ResolverYield extends ResolverWorkload {
  /** Works about which it was asked. */
  readonly asked: number;
  /** Works whose article it found. */
  readonly stored: number;
}

/** What a manifest has, over all its runs. */
export interface WorksReport extends Pick<ManifestReport, "works" | "reasons" | "files"> {
  /** The resolver with the most stored works first. */
  readonly yields: readonly ResolverYield[];
  readonly fileKinds: readonly FileKindCount[];
  readonly lastFailed: readonly FailedWork[];
}

const FAILED_MAX = 50;

export async function worksReport({ reports }: Manifest): Promise<WorksReport> {
  const { works, reasons, files } = await reports.report();
  const counts = new Map((await reports.resolverCounts()).map(count => [count.resolver, count]));
  const yields = (await reports.workloads()).map(workload => {
    const { asked = 0, stored = 0 } = counts.get(workload.resolver) ?? {};
    return { ...workload, asked, stored };
  });
  return {
    ...{ works, reasons, files },
    yields: yields.toSorted((one, other) => other.stored - one.stored || (one.resolver < other.resolver ? -1 : 1)),
    fileKinds: await reports.fileKinds(),
    lastFailed: await reports.failedWorks(FAILED_MAX),
  };
}
