/** What a worker has done so far. */
export interface WorkerStatus {
  /** Number of works. */
  readonly done: number;
  /** Number of works. */
  readonly failed: number;
  /** Size of the downloaded files. */
  readonly bytes: number;
  /** Number of requests. */
  readonly inFlight: number;
}

/** A process that works on a run. */
export interface ManifestWorker extends WorkerStatus {
  readonly id: number;
  readonly run: number;
  /** `host:pid`. */
  readonly name: string;
  readonly startedMs: number;
  /** For how long it has worked, by the clock of the database. */
  readonly elapsedMs: number;
  /** Works that it has taken and not settled. */
  readonly taken: number;
  /** Whether it still adds works to the run. */
  readonly isListing: boolean;
  /** False if its lease has ended: another worker takes over its works. */
  readonly isAlive: boolean;
}
