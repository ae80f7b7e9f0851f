/** The work of a program: starts all calls at once, and repeats those that failed. */
import type { Client } from "./client.ts";
import type { RaceRole } from "./limits.ts";
import { pathOf } from "./paths.ts";
import type { RequestCounts } from "./scenario.ts";

/** Attempts for each item; in each of them a client may retry several times. */
const MAX_TRIES = 3;

export interface WorkloadTally {
  succeeded: number;
  /** Calls that were given up. */
  failed: number;
  /** Calls that failed and were repeated. */
  putBack: number;
}

export function fetchAll(client: Client, origin: string, load: RequestCounts, tally: WorkloadTally): Promise<unknown> {
  const items = interleaved(load);
  return Promise.all(
    items.map((role, index) => fetchOne(client, `${origin}${pathOf(role, `${process.pid}/${index}`)}`, role, tally)),
  );
}

async function fetchOne(client: Client, url: string, role: RaceRole, tally: WorkloadTally): Promise<void> {
  for (let attempt = 1; attempt <= MAX_TRIES; attempt += 1) {
    const status = await client.get(url, role).catch((error: unknown) => {
      // An error of the race itself must not count as a failure of a client.
      if (error instanceof ReferenceError || error instanceof RangeError) throw error;
      return 0;
    });
    if (status === 200) {
      tally.succeeded += 1;
      return;
    }
    if (attempt < MAX_TRIES) tally.putBack += 1;
  }
  tally.failed += 1;
}

/** Roles are mixed evenly, as in a program that finds a file with every few records. */
function interleaved({ metadata = 0, artifact = 0 }: RequestCounts): readonly RaceRole[] {
  const every = artifact === 0 ? Number.POSITIVE_INFINITY : (metadata + artifact) / artifact;
  return Array.from({ length: metadata + artifact }, (_, index) =>
    Math.floor((index + 1) / every) > Math.floor(index / every) ? "artifact" : "metadata",
  );
}
