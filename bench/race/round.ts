/** Runs one client in one scenario: starts and ends its processes, the server and the store. */
import { openFolder } from "../stores/folder.ts";
import { openServer } from "../stores/server.ts";
import type { ServerReport } from "./arrivals.ts";
import { fastestMs } from "./bound.ts";
import type { ClientOrder, ClientReport } from "./client-process.ts";
import type { ClientSpec } from "./client-spec.ts";
import { shareOf } from "./limits.ts";
import { Child } from "./processes.ts";
import { openRaceServer, START_MS, whyNoServer } from "./race-server.ts";
import type { ClientRun, RunOutcome } from "./result.ts";
import { boundInputOf, requestsOf, type Scenario } from "./scenario.ts";

/** The default guard of docstokg. */
const GUARD_MS = 25;
/** The mean jitter of the first request after a Retry-After (law B12), so that clients do not all come back at once. */
const JITTER_MS = 75;
/** Time for scenarios without a planned duration: virtual time, a million hosts. */
const LEAST_REPORT_MS = 120_000;

export async function runRound(scenario: Scenario, spec: ClientSpec, seed: string): Promise<ClientRun> {
  const { store, needsSharedStore = false } = scenario;
  const isSharing = store !== undefined && spec.shares.includes(store);
  const client = spec.id;
  if (needsSharedStore && !isSharing) return { client, cannot: "cannot share a limit through Redis: see R6 on SQLite" };
  using folder = openFolder();
  await using redis = isSharing && store === "redis" ? await openServer() : undefined;
  if (isSharing && store === "redis" && redis === undefined) return { client, cannot: "no redis-server on PATH" };
  const place = redis?.url ?? `sqlite:${folder.file("limits.db")}`;
  const processes = Math.max(1, scenario.loads.length);
  const isDivided = processes > 1 && !isSharing;
  const hasNetwork = !scenario.isVirtual && !scenario.hosts;
  const cannot = hasNetwork || !spec.needsNetwork ? whyNoServer(scenario) : "opens its own connections";
  if (cannot !== undefined) return { client, cannot };
  await using server = await openRaceServer(scenario);
  const order = (index: number): ClientOrder => ({
    client,
    scenario,
    index,
    origin: server?.origin ?? "http://127.0.0.1",
    seed: `${seed} ${scenario.id} ${client}`,
    limits: isDivided ? shareOf(scenario.limits, processes) : scenario.limits,
    ...(isSharing && { store: place }),
    limitMs: 10_000 + 4 * fastestMs(boundInputOf(scenario)),
  });
  const reports = await runClientProcesses(Array.from({ length: processes }, (_, index) => order(index)));
  const seen = server ? await server.report() : reports[0]?.server;
  const note = isDivided && spec.hasLimiter ? `each process with 1/${processes} of the limit` : undefined;
  return { client, ...(note !== undefined && { note }), outcome: outcomeOf(scenario, reports, seen) };
}

async function runClientProcesses(orders: readonly ClientOrder[]): Promise<readonly ClientReport[]> {
  await using processStack = new AsyncDisposableStack();
  // Processes stop by themselves; this ends one that does not.
  const reportMs = Math.max(
    LEAST_REPORT_MS,
    ...orders.map(({ scenario, limitMs }) => (scenario.isVirtual ? 0 : limitMs * 2)),
  );
  const children = orders.map(order => processStack.use(new Child("client-process.ts", order)));
  await Promise.all(children.map(child => child.nextMessage(START_MS)));
  const reports = Promise.all(children.map(child => child.nextMessage(reportMs) as Promise<ClientReport>));
  for (const child of children) child.send("go");
  return await reports;
}

function outcomeOf(scenario: Scenario, reports: readonly ClientReport[], seen: ServerReport | undefined): RunOutcome {
  const sum = (of: (report: ClientReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const stalls = reports.flatMap(report => report.stalls);
  const hosts = reports[0]?.hosts;
  const requests = requestsOf(scenario);
  const resumedMs = seen?.retryAfterUntilMs === undefined ? undefined : seen.retryAfterUntilMs + JITTER_MS;
  return {
    requests,
    succeeded: sum(({ succeeded }) => succeeded),
    failed: sum(({ failed }) => failed),
    putBack: sum(({ putBack }) => putBack),
    makespanMs:
      Math.max(...reports.map(({ endedMs }) => endedMs)) - Math.min(...reports.map(({ startedMs }) => startedMs)),
    boundMs: fastestMs(boundInputOf(scenario, stalls)),
    politeMs: fastestMs({ ...boundInputOf(scenario, stalls, resumedMs), guardMs: GUARD_MS }),
    cpuUsPerRequest: (sum(({ cpuMs }) => cpuMs) * 1000) / (hosts?.met ?? requests),
    memoryMb: sum(({ memoryMb }) => memoryMb),
    ...(seen && { arrivals: seen.arrivals, rejections: seen.rejections, busiest: seen.busiest }),
    ...(seen &&
      scenario.outage && {
        outage: {
          arrivals: seen.duringOutage,
          ...(seen.recoveryMs !== undefined && { recoveryMs: seen.recoveryMs }),
        },
      }),
    ...(hosts && { hosts: { met: hosts.met, bytesPerHost: hosts.bytesPerHost } }),
  };
}
