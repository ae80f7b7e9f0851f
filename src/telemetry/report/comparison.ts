import type { RunSummary } from "../summary/run-summary.ts";

/** The numbers of one host, or of all, that a change of policy may affect. */
export interface ComparedNumbers {
  /** Requests sent. */
  readonly attempts: number;
  /** Responses with status 429, as a share of the requests sent. */
  readonly rate429: number;
  /** Responses with status 503, as a share of the requests sent. */
  readonly rate503: number;
  /** The mean wait before sending, in ms. */
  readonly meanWaitMs: number;
  /** The sum of all waits, in ms. */
  readonly totalWaitMs: number;
  /** Circuits that opened, and cooldowns that began. */
  readonly opens: number;
  readonly opensPerHour: number;
  /** Calls that a breaker refused. */
  readonly denied: number;
  /** As `breaker.timeSavedMs`. */
  readonly timeSavedMs: number;
}

/** The same numbers of two runs. */
export interface ComparedRow {
  /** The host, service or resolver; undefined for the total. */
  readonly host: string | undefined;
  readonly before: ComparedNumbers;
  readonly after: ComparedNumbers;
}

/** The numbers of two runs, such as before and after a change of policy. */
export interface RunComparison {
  readonly before: Pick<RunSummary, "runId" | "startedMs" | "durationMs" | "configHashes">;
  readonly after: Pick<RunSummary, "runId" | "startedMs" | "durationMs" | "configHashes">;
  readonly total: ComparedRow;
  /** Hosts, services and resolvers of either run, most requests first. */
  readonly hosts: readonly ComparedRow[];
}

const ZEROS: ComparedNumbers = Object.freeze({
  attempts: 0,
  rate429: 0,
  rate503: 0,
  meanWaitMs: 0,
  totalWaitMs: 0,
  opens: 0,
  opensPerHour: 0,
  denied: 0,
  timeSavedMs: 0,
});

export function compareRuns(before: RunSummary, after: RunSummary): RunComparison {
  const [first, second] = [numbersByHost(before), numbersByHost(after)];
  const hosts = [...new Set([...first.keys(), ...second.keys()])].map(host => ({
    host,
    before: first.get(host) ?? ZEROS,
    after: second.get(host) ?? ZEROS,
  }));
  const requests = ({ before: one, after: other }: ComparedRow) => one.attempts + other.attempts;
  return {
    before: headOf(before),
    after: headOf(after),
    total: { host: undefined, before: totalOf(before), after: totalOf(after) },
    hosts: hosts.sort((a, b) => requests(b) - requests(a) || (a.host < b.host ? -1 : 1)),
  };
}

function headOf({ runId, startedMs, durationMs, configHashes }: RunSummary): RunComparison["before"] {
  return { runId, startedMs, durationMs, configHashes };
}

function totalOf({ throttles, delayMs, breaker }: RunSummary): ComparedNumbers {
  const { attempts, answers429, answers503 } = throttles;
  const { opens, opensPerHour, denied, timeSavedMs } = breaker;
  return {
    attempts,
    rate429: share(answers429, attempts),
    rate503: share(answers503, attempts),
    meanWaitMs: share(delayMs.total, delayMs.count),
    totalWaitMs: delayMs.total,
    opens,
    opensPerHour,
    denied,
    timeSavedMs,
  };
}

/** All roles of a host together. */
function numbersByHost({ hosts, breaker }: RunSummary): ReadonlyMap<string, ComparedNumbers> {
  const rows = Map.groupBy(hosts, ({ host }) => host);
  const breakers = new Map(breaker.hosts.map(row => [row.host, row]));
  const names = [...new Set([...rows.keys(), ...breakers.keys()])];
  return new Map(
    names.map(host => {
      const roles = rows.get(host) ?? [];
      const sum = (read: (row: (typeof roles)[number]) => number) => roles.reduce((all, row) => all + read(row), 0);
      const attempts = sum(row => row.attempts);
      const totalWaitMs = sum(row => row.delayMs.total);
      const { opens = 0, opensPerHour = 0, denied = 0, timeSavedMs = 0 } = breakers.get(host) ?? {};
      const numbers: ComparedNumbers = {
        attempts,
        rate429: share(
          sum(row => row.answers429),
          attempts,
        ),
        rate503: share(
          sum(row => row.answers503),
          attempts,
        ),
        meanWaitMs: share(
          totalWaitMs,
          sum(row => row.delayMs.count),
        ),
        totalWaitMs,
        opens,
        opensPerHour,
        denied,
        timeSavedMs,
      };
      return [host, numbers];
    }),
  );
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
