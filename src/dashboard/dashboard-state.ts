/**
 * The state that the page shows, as it is sent to the browser: plain JSON. The page imports these types, so this file
 * imports nothing. Instants are epoch milliseconds of the server, and `null` means "none".
 */

export type CircuitStateName = "closed" | "open" | "half_open";

/** One window of a key. */
export interface WindowState {
  /** The rate as the policy writes it, `10/SECOND`. */
  readonly rate: string;
  /** Units used in the window that ends now, over all processes. */
  readonly used: number;
  readonly limit: number;
  /** True if the server announced this limit and the policy would allow more. */
  readonly isLearned: boolean;
}

/** The limits that an operator has ordered for a key or total. */
export interface OrderState {
  /** `2/SECOND+100/HOUR, max_concurrent 3`. */
  readonly limits: string;
  readonly reason: string;
  readonly by: string;
  readonly untilMs: number | null;
  /** True if the order allows more than the policy. */
  readonly isLooser: boolean;
  /** The limits of the policy that the order replaces or tightens, as `limits`; empty if there are none. */
  readonly policyLimits: string;
}

/** The limits that an operator has ordered for the total of a host or service. */
export interface TotalOrderState extends OrderState {
  readonly owner: string;
}

/** An operator holds the calls of a key, or a part of them. */
export interface HoldState {
  /** The host or service that is held. */
  readonly target: string;
  readonly reason: string;
  readonly untilMs: number | null;
}

/** The limits of one role of a host or service. */
export interface KeyState {
  readonly role: string;
  readonly windows: readonly WindowState[];
  readonly acquired: number;
  readonly refused: number;
  readonly inFlight: number;
  /** Null if there is no limit. */
  readonly maxConcurrent: number | null;
  readonly waiting: number;
  /** How long a new call would wait. */
  readonly newCallMs: number;
  /** The limit that a new call would wait for. */
  readonly limitedBy: string | null;
  /** Where that limit is set: `ratelimits.yaml:34`, a variable, a flag; null where the source does not say. */
  readonly decidedBy: string | null;
  /** True if a server or an operator has asked for a pause that is not over. */
  readonly isHeld: boolean;
  /** The order of an operator that holds calls of the key; null if there is none. */
  readonly hold: HoldState | null;
  /** The order of an operator that has changed its limits; null if there is none. */
  readonly order: OrderState | null;
  /** The order of an operator that has changed a total that counts its requests; null if there is none. */
  readonly totalOrder: TotalOrderState | null;
  /** The pace learned by AIMD; 1 is full pace. */
  readonly pace: number;
  readonly guardMs: number;
  readonly shape: "burst" | "smooth";
  /** Number of processes that use the key. */
  readonly processes: number;
}

/** The circuit of one role of a host. For the circuit of a resolver, `role` is empty. */
export interface CircuitRowState {
  readonly role: string;
  readonly state: CircuitStateName;
  /** Consecutive failures while closed; null where the store does not record them. */
  readonly failures: number | null;
  /** Trial calls in flight. */
  readonly probes: number;
  /** When the circuit becomes half-open. */
  readonly untilMs: number | null;
}

/** A host, a service or a resolver: its circuits, and the limits of its roles. */
export interface HostState {
  readonly name: string;
  readonly kind: "host" | "service" | "resolver";
  readonly state: CircuitStateName;
  /** Why it is open or half-open: `failures`, `retry-after`, `rolling-window`, `slow-calls` or the reason of an operator. */
  readonly reason: string | null;
  /** When every role may be called again. */
  readonly untilMs: number | null;
  /** In cooldown, which refuses every role. */
  readonly isCooling: boolean;
  /** Failures in the rolling window. */
  readonly windowFailures: number;
  readonly circuits: readonly CircuitRowState[];
  readonly keys: readonly KeyState[];
  /** The list is sorted by it, the highest first. 0 if the host needs no attention. */
  readonly attention: number;
  /** Why it needs attention; empty if it does not. */
  readonly why: string;
}

/** A process that uses the limits. */
export interface ProcessState {
  readonly id: string;
  readonly pid: number;
  readonly machine: string;
  readonly program: string;
  readonly startedMs: number;
  /** When it published its status; null for the process of the dashboard itself. */
  readonly writtenMs: number | null;
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  /** Number of keys that it lists. */
  readonly keys: number;
  /** True if it has more keys: a process publishes its busiest keys, and those that operators ask for. */
  readonly isPartial: boolean;
}

export type SeriesName = "requests" | "waitMs" | "throttles" | "hits" | "failures" | "refused";

/** What happened in one step of the charts. Counts are totals of the step, `waitMs` is the longest wait in the queue. */
export interface SeriesPoint extends Readonly<Record<SeriesName, number>> {
  /** Start of the step, in epoch milliseconds. */
  readonly atMs: number;
}

export interface SeriesState {
  readonly stepMs: number;
  /** Oldest first. Steps in which nothing happened are absent. */
  readonly points: readonly SeriesPoint[];
}

export interface EventRow {
  /** Increases by at least 1 from event to event. */
  readonly seq: number;
  readonly atMs: number;
  readonly type: string;
  /** The host, key or resolver that it concerns; empty for the whole process. */
  readonly host: string;
  readonly role: string;
  readonly text: string;
  /** `bad`: a failure or an opening. `warn`: a throttle, a refusal or a slower pace. `info`: everything else. */
  readonly level: "bad" | "warn" | "info";
  /** True for events of ordinary requests and for refusals. The page hides them by default, and gets only a sample. */
  readonly isRoutine: boolean;
}

/** A process that works on a run, and the results of its work. */
export interface WorkerState {
  /** `machine:pid`. */
  readonly name: string;
  readonly startedMs: number;
  readonly done: number;
  readonly failed: number;
  readonly bytes: number;
  /** Works that it has taken and not settled. */
  readonly taken: number;
  /** False if its lease has ended: another worker takes over its works. */
  readonly isAlive: boolean;
}

/** The attempts for a work, the oldest first. */
export interface WorkHistoryState {
  readonly key: string;
  readonly title?: string | undefined;
  readonly state: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly attempts: readonly {
    /** `resolve`, `landing` or `fetch`. */
    readonly step: string;
    readonly resolver: string;
    readonly host?: string | undefined;
    readonly status?: number | undefined;
    readonly reason: string;
    readonly message?: string | undefined;
    readonly elapsedMs: number;
    readonly endedMs: number;
  }[];
}

/** The works of a run of `docstokg run`. */
export interface RunState {
  readonly folder: string;
  /** `running`, `ended`, `interrupted`, `stopped` (killed) or `waiting` (for `docstokg worker`). */
  readonly state: string;
  readonly command: string;
  readonly startedMs: number;
  readonly endedMs: number | null;
  /** True if an operator has paused it: no request is started. */
  readonly isPaused: boolean;
  readonly total: number;
  readonly done: number;
  readonly failed: number;
  readonly pending: number;
  readonly files: number;
  readonly bytes: number;
  /** Estimated time until the limits have admitted the pending works; null if unknown, or if the run is not running. */
  readonly timeLeftMs: number | null;
  readonly failures: readonly { readonly reason: string; readonly works: number }[];
  readonly resolvers: readonly { readonly resolver: string; readonly asked: number; readonly stored: number }[];
  /** The processes that share the work of the run. Empty if its manifest is a file: then one process works on it. */
  readonly workers: readonly WorkerState[];
  readonly lastFailed: readonly { readonly key: string; readonly reason: string; readonly message: string }[];
}

/** The source of the state, and the actions that the page may send. */
export interface AboutState {
  readonly kind: "hub" | "store" | "run";
  /** `program, pid 123`, the name of the store, or the folder. */
  readonly name: string;
  /** True if the source has the events of every request; false if its events are differences between two states. */
  readonly hasEvents: boolean;
  /** True if the series count throttles, hits and failures; false if they count only requests and refusals. */
  readonly hasOutcomes: boolean;
  /** Actions that the page may send; empty in read-only mode. */
  readonly actions: readonly ActionName[];
  /** Whether the page may ask processes for a host that they do not list. */
  readonly canAsk: boolean;
  /** Proves that an action comes from the page. */
  readonly actionToken: string;
}

/**
 * The actions of an operator on a host, one of its roles or a resolver, or on the run of this process. `hold` makes the
 * calls to a host wait instead of failing, and `release` ends this. `set-limit` changes the limits of a host, and
 * `reset-limit` ends this. `retry` adds failed works to the run.
 */
export type ActionName =
  | "open"
  | "close"
  | "half-open"
  | "hold"
  | "release"
  | "set-limit"
  | "reset-limit"
  | "pause"
  | "resume"
  | "retry";

export type RunActionName = Extract<ActionName, "pause" | "resume" | "retry">;

export type HostActionName = Exclude<ActionName, RunActionName>;

/** The result of an action. */
export interface ActionResult {
  /** True if every process has applied it. */
  readonly isApplied: boolean;
  /** `applied by 3 of 3 processes`. */
  readonly text: string;
}

/** The answer of the processes that were asked to list a host. */
export interface AskResult {
  /** True if the host is listed now. */
  readonly isListed: boolean;
  /** `no running process has called api.example.org`. */
  readonly text: string;
}

export interface Totals {
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
}

/** Everything, sent when a page connects. */
export interface DashboardState {
  readonly nowMs: number;
  readonly about: AboutState;
  readonly totals: Totals;
  readonly hosts: readonly HostState[];
  readonly processes: readonly ProcessState[];
  readonly series: SeriesState;
  readonly events: readonly EventRow[];
  readonly run: RunState | null;
  /** Which fields are missing, or are not read now but the last ones that were read, and why. Null if there are none. */
  readonly trouble: string | null;
}

/** The changes since the previous message. Absent members have not changed. */
export interface DashboardPatch {
  readonly nowMs: number;
  readonly totals?: Totals;
  /** New and changed hosts. */
  readonly hosts?: readonly HostState[];
  /** Names of hosts that are no longer listed. */
  readonly gone?: readonly string[];
  readonly processes?: readonly ProcessState[];
  /** The complete charts, if their steps have another length or begin after those that were sent. */
  readonly series?: SeriesState;
  /** New steps, and the last ones again while they grow. */
  readonly points?: readonly SeriesPoint[];
  readonly events?: readonly EventRow[];
  readonly run?: RunState | null;
  readonly trouble?: string | null;
}
