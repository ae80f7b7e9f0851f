import { breakerRows } from "../http/breaker-rows.ts";
import type { Observer, RunningProcess } from "../http/observer.ts";
import type { Operator } from "../http/operator.ts";
import { ProcessPolicies } from "../http/process-policies.ts";
import { processRow } from "../http/process-row.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import { type ExplainedValue, explainTarget } from "../policy/explanation.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import { isRole, unknownRoleMessage } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { type DashboardActions, StoreActions } from "./actions.ts";
import { askForHost } from "./ask-for-host.ts";
import type { ProcessState } from "./dashboard-state.ts";
import { EventLog } from "./event-log.ts";
import { hostStates } from "./host-states.ts";
import { RateSeries } from "./rate-series.ts";
import { type SeenState, seenChanges } from "./seen-changes.ts";
import type { DashboardSource, SourceState } from "./source.ts";

const SERIES_STEP_MS = 1000;
const SERIES_KEEP_MS = 15 * 60_000;

export interface StoreSourceOptions {
  readonly observer: Observer;
  /** Undefined in read-only mode. */
  readonly operator: Operator | undefined;
  /** The policy of the command, for values that no running process has published. */
  readonly policy: LoadedPolicy;
  /** Without credentials. */
  readonly storeName: string;
  readonly time: Time;
  /** Rejects if the store must not be read or written now. */
  readonly check?: () => Promise<void>;
}

/**
 * All processes that share a store. Processes publish their state once a second. Requests, refusals and events are the
 * differences from one state to the next.
 */
export class StoreSource implements DashboardSource {
  readonly about;
  readonly actions: DashboardActions | undefined;
  readonly log = new EventLog();
  readonly ask: DashboardSource["ask"];
  readonly #options: StoreSourceOptions;
  readonly #policies: ProcessPolicies;
  readonly #series = new RateSeries({ stepMs: SERIES_STEP_MS, keepMs: SERIES_KEEP_MS });
  #seen: SeenState | undefined;
  /** Granted and refused requests of each process so far. */
  #counts: ReadonlyMap<string, RequestCounts> = new Map();

  constructor(options: StoreSourceOptions) {
    this.#options = options;
    this.#policies = new ProcessPolicies(options.observer, options.policy);
    const { operator, policy, time, check } = options;
    const actions = operator && new StoreActions(operator, policy, time);
    // A store that was deleted would be created again by an order, and the page would show the empty one.
    this.actions = actions && {
      names: actions.names,
      run: async action => {
        await check?.();
        return actions.run(action);
      },
    };
    this.ask =
      operator &&
      (async name => {
        await check?.();
        return askForHost(operator, name, time);
      });
    this.about = { kind: "store" as const, name: options.storeName, hasEvents: false, hasOutcomes: false };
  }

  async read(): Promise<SourceState> {
    const { observer, time, check } = this.#options;
    await check?.();
    const [statuses, running] = await Promise.all([observer.hosts(), observer.processes()]);
    const policyOf = await this.#policies.of(running);
    const nowMs = time.wallMs();
    const [newest] = running.toSorted((a, b) => b.writtenMs - a.writtenMs);
    const { windowUs } = policyOf(newest).policy.breakers.resolved.rollingWindow;
    const rows = running.map(process => {
      const { policy, settings } = policyOf(process);
      const { keys, ageMs } = processRow(process, nowMs, settings);
      return { ageMs, keys: keys.map(key => ({ ...key, sharesSlots: sharesSlots(policy, key) })) };
    });
    const breakers = breakerRows(statuses, running, { wallMs: nowMs, windowUs }).map(row => ({
      ...row,
      isCooling: row.cooldownMs > 0,
    }));
    const hosts = hostStates(breakers, rows, nowMs, this.#seen?.hosts);
    const processes = running.map(processState).sort((a, b) => (a.id < b.id ? -1 : 1));
    const seen = { hosts: new Map(hosts.map(host => [host.name, host])), processes };
    if (this.#seen !== undefined)
      for (const line of seenChanges(this.#seen, seen)) this.log.addLine({ atMs: nowMs, ...line });
    this.#seen = seen;
    this.#count(running, nowMs);
    for (const { keys } of hosts)
      for (const { waiting, newCallMs } of keys) if (waiting > 0) this.#series.raise("waitMs", newCallMs, nowMs);
    const sum = (of: (process: ProcessState) => number) => processes.reduce((total, process) => total + of(process), 0);
    return {
      totals: {
        calls: sum(({ calls }) => calls),
        inFlight: sum(({ inFlight }) => inFlight),
        waiting: sum(({ waiting }) => waiting),
      },
      hosts,
      processes,
      series: { stepMs: SERIES_STEP_MS, points: this.#series.since(nowMs - SERIES_KEEP_MS) },
      events: this.log.takeAll(),
      run: null,
    };
  }

  /** Uses the policy of the running process with the most recent status, or else the policy of the command. */
  async explain(name: string, role: string): Promise<readonly ExplainedValue[]> {
    if (!isRole(role)) throw new RangeError(unknownRoleMessage(role));
    const [running] = await this.#options.observer.policies();
    return explainTarget(running?.policy ?? this.#options.policy, name, role);
  }

  setWatched(isWatched: boolean): void {
    // Requests in the time without a page are not counted: they would look like a burst.
    if (!isWatched) this.#counts = new Map();
  }

  async close(): Promise<void> {
    // The command that has opened the store closes it.
  }

  #count(running: readonly RunningProcess[], nowMs: number): void {
    const counts = new Map(running.map(process => [process.processId, requestCounts(process)]));
    for (const [id, { granted, refused }] of counts) {
      const known = this.#counts.get(id);
      if (known === undefined) continue;
      this.#series.add("requests", Math.max(0, granted - known.granted), nowMs);
      this.#series.add("refused", Math.max(0, refused - known.refused), nowMs);
    }
    this.#counts = counts;
  }
}

function sharesSlots({ ratelimits }: LoadedPolicy, { key, role }: KeySnapshot): boolean {
  return ratelimits.resolved.routeByName(key, role)?.roleBudget.sharesSlots === true;
}

interface RequestCounts {
  readonly granted: number;
  readonly refused: number;
}

/** Processes of older versions publish no totals. The sum over their listed keys may be wrong: the list changes. */
function requestCounts({ snapshot: { keys, granted, refused: allRefused } }: RunningProcess): RequestCounts {
  if (granted !== undefined && allRefused !== undefined) return { granted, refused: allRefused };
  return {
    granted: keys.reduce((sum, { acquired, headSkipped }) => sum + acquired + headSkipped, 0),
    refused: keys.reduce((sum, { refused }) => sum + refused, 0),
  };
}

function processState({
  processId,
  pid,
  machine,
  program,
  startedMs,
  writtenMs,
  snapshot,
}: RunningProcess): ProcessState {
  const { calls, inFlight, waiting, keys, isPartial = false } = snapshot;
  const counts = { calls, inFlight, waiting, keys: keys.length, isPartial };
  return { id: processId, pid, machine, program, startedMs, writtenMs, ...counts };
}
