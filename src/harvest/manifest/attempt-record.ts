import type { Reason } from "../reason.ts";

/** One request of a work, and its result. */
export interface AttemptRecord {
  readonly step: "ask" | "robots" | "fetch";
  readonly resolver: string;
  /** Stored without secrets: `redactedUrl`. */
  readonly url: string;
  readonly status?: number | undefined;
  readonly reason: Reason;
  readonly message?: string | undefined;
  readonly bytes?: number | undefined;
  readonly sha256?: string | undefined;
  readonly elapsedMs: number;
}

/** An attempt, and the run that has made it. */
export interface AttemptOfRun {
  readonly run: number;
  readonly attempt: AttemptRecord;
}
