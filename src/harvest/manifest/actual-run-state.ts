import type { Manifest } from "./manifest.ts";
import type { ManifestReport } from "./manifest-reports.ts";

/**
 * The state of the last run. If it is recorded as running and no process works on it, it was killed (`stopped`), or it was
 * added with `--enqueue-only` and waits for a worker (`waiting`).
 */
export async function actualRunState(
  manifest: Manifest,
  { state }: Pick<ManifestReport["runs"][number], "state">,
): Promise<string> {
  if (state !== "running" || (await manifest.isInUse())) return state;
  return (await manifest.nextRun()) === undefined ? "stopped" : "waiting";
}
