/**
 * The failures that all processes count together, as part of the record of a host or resolver: those of each circuit
 * since the last success of any process, and those of the host within the rolling window.
 * Pure: each function takes a record and returns the next one, or the same object when nothing changed.
 *
 * A failure that never reached the host (DNS, connect, TLS) may be a fault of the process's own network. Such failures
 * count for all only while two processes have them; a success of any process removes them.
 *
 * A process may report a failure long after it happened, because its store was slow or away. Versions follow the time of
 * the report (`nowUs`), windows and open times follow the time of the failure (`failedUs`).
 */
import {
  type BreakerRecord,
  circuitRecordOf,
  type FailureCounts,
  isSerialAfter,
  nextSerial,
  openCircuit,
  type RecentFailures,
  setCooldown,
  type UnreachedCount,
} from "./breaker-record.ts";

/** A failure that a process adds to those of its peers. */
export interface CountedFailure {
  readonly processId: string;
  readonly isThrottled: boolean;
  /** The call never reached the host. */
  readonly isUnreached: boolean;
}

export interface WindowPolicy {
  readonly threshold: number;
  readonly windowUs: number;
  readonly cooldownMs: number;
}

/** Bounds of a record. Further failures are added to the last process, or to the oldest instant. */
const PROCESSES_MAX = 8;
const INSTANTS_MAX = 32;

const NO_COUNTS: FailureCounts = Object.freeze({
  sinceSerial: 0,
  reached: 0,
  throttles: 0,
  throttleSerial: 0,
  throttledProcess: "",
  unreached: [],
});

/**
 * Counts a failure of a closed circuit, and opens the circuit when the processes have `failMax` failures together. Of a
 * half-open circuit, only trial calls that never reached the host are counted, and such calls of two processes open the
 * circuit again. If the open time is over when the failure is reported, the circuit is half-open at once. A failure from
 * before the circuit was closed has no effect (law B3).
 * @param knownThrottleSerial the newest throttle that the process had read when the call failed
 */
export function countFailure(
  record: BreakerRecord,
  name: string,
  failure: CountedFailure,
  knownThrottleSerial: number,
  { failMax, resetUs }: { readonly failMax: number; readonly resetUs: number },
  nowUs: number,
  failedUs = nowUs,
): BreakerRecord {
  const circuit = circuitRecordOf(record, name);
  const isHalfOpen = !circuit.isClosed && circuit.untilUs <= failedUs;
  const isBeforeClosing = isSerialAfter(circuit.serial, failedUs, nowUs);
  if (circuit.isClosed ? isBeforeClosing : !(isHalfOpen && failure.isUnreached)) return record;
  const known = circuit.counts ?? { ...NO_COUNTS, sinceSerial: nextSerial(circuit.lastCountSerial ?? 0, nowUs) };
  const isSameEvent = failure.isThrottled && known.throttleSerial > knownThrottleSerial;
  if (isSameEvent && known.throttledProcess !== failure.processId) return record;
  const lastUs = Math.min(nowUs, Math.max(known.lastUs ?? 0, failedUs));
  const counts = { ...withFailure(known, failure, nowUs), lastUs };
  const isOpened = isHalfOpen ? counts.unreached.length > 1 : sharedFailures(counts) >= failMax;
  const reopened = isHalfOpen ? circuit.reopened + 1 : 0;
  if (isOpened) return openCircuit(record, name, { untilUs: lastUs + resetUs, reopened }, nowUs, lastUs);
  const lastCountSerial = Math.max(counts.sinceSerial, counts.throttleSerial);
  return { ...record, circuits: { ...record.circuits, [name]: { ...circuit, counts, lastCountSerial } } };
}

/** The failures that count for every process. */
function sharedFailures({ reached, throttles, unreached }: FailureCounts): number {
  const confirmed = unreached.length > 1 ? unreached.reduce((sum, { failures }) => sum + failures, 0) : 0;
  return Math.max(reached + confirmed, throttles);
}

/** A call of a closed circuit has succeeded. It also shows that the host can be reached. */
export function resetFailureCounts(record: BreakerRecord, name: string): BreakerRecord {
  const { [name]: circuit, ...others } = record.circuits;
  if (circuit?.counts === undefined) return record;
  const { counts, ...kept } = circuit;
  return withoutUnreached({ ...record, circuits: { ...others, [name]: kept } });
}

/** Removes the failures of the rolling window that a success has shown to be faults of single processes. */
export function withoutUnreached(record: BreakerRecord): BreakerRecord {
  const { recentFailures = [], ...rest } = record;
  const reached = recentFailures.filter(({ unreachedProcess }) => unreachedProcess === undefined);
  if (reached.length === recentFailures.length) return record;
  return reached.length === 0 ? rest : { ...rest, recentFailures: reached };
}

/**
 * Counts a failure in the rolling window of the host, and starts its cooldown at the threshold (law B6). If the time of
 * that cooldown is over when the failure is reported, only the failures are cleared.
 */
export function countRecentFailure(
  record: BreakerRecord,
  { processId, isUnreached }: Pick<CountedFailure, "processId" | "isUnreached">,
  { threshold, windowUs, cooldownMs }: WindowPolicy,
  nowUs: number,
  failedUs = nowUs,
): BreakerRecord {
  const { recentFailures: known = [], ...others } = record;
  const failure: RecentFailures = { atUs: failedUs, failures: 1, ...(isUnreached && { unreachedProcess: processId }) };
  const ordered = [...known, failure].sort((a, b) => a.atUs - b.atUs);
  const lastUs = Math.min(nowUs, Math.max(...ordered.map(({ atUs }) => atUs)));
  const recentFailures = bounded(ordered.filter(({ atUs }) => lastUs - atUs < windowUs));
  if (sharedRecentFailures(recentFailures) < threshold) return { ...record, recentFailures };
  const untilUs = lastUs + cooldownMs * 1000;
  if (untilUs <= nowUs) return others;
  return setCooldown(record, "serverCooldown", { untilUs, reason: "rolling-window" }, nowUs, failedUs);
}

function sharedRecentFailures(recent: readonly RecentFailures[]): number {
  const processes = new Set(recent.flatMap(({ unreachedProcess = [] }) => unreachedProcess));
  const counted = recent.filter(({ unreachedProcess }) => unreachedProcess === undefined || processes.size > 1);
  return counted.reduce((sum, { failures }) => sum + failures, 0);
}

/**
 * Joins the oldest entry with the next one of the same process, or of no process, at the earlier instant: no failure
 * counts for longer than the window.
 */
function bounded(recent: readonly RecentFailures[]): readonly RecentFailures[] {
  if (recent.length <= INSTANTS_MAX) return recent;
  const [first, ...rest] = recent as readonly [RecentFailures, ...RecentFailures[]];
  const twin = rest.findIndex(({ unreachedProcess }) => unreachedProcess === first.unreachedProcess);
  const joined = { ...first, failures: first.failures + (rest[twin]?.failures ?? 0) };
  // Without such an entry, the oldest is dropped.
  return twin < 0 ? rest : [joined, ...rest.filter((_, index) => index !== twin)];
}

function withFailure(counts: FailureCounts, { processId, isThrottled, isUnreached }: CountedFailure, nowUs: number) {
  if (isThrottled) {
    const throttleSerial = nextSerial(Math.max(counts.throttleSerial, counts.sinceSerial), nowUs);
    return { ...counts, throttles: counts.throttles + 1, throttleSerial, throttledProcess: processId };
  }
  if (!isUnreached) return { ...counts, reached: counts.reached + 1 };
  return { ...counts, unreached: withUnreached(counts.unreached, processId) };
}

function withUnreached(unreached: readonly UnreachedCount[], processId: string): readonly UnreachedCount[] {
  const ownIndex = unreached.findIndex(count => count.processId === processId);
  if (ownIndex < 0 && unreached.length < PROCESSES_MAX) return [...unreached, { processId, failures: 1 }];
  const changedIndex = ownIndex < 0 ? unreached.length - 1 : ownIndex;
  return unreached.map((count, index) => (index === changedIndex ? { ...count, failures: count.failures + 1 } : count));
}
