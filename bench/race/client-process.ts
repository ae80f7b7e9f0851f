/**
 * One process of one client: `client-process.ts <order as JSON>`. Opens the client, reports that it is ready, starts on
 * a message of the parent, sends its report, and ends when the parent disconnects.
 */
import { collectGarbage } from "../kit/heap.ts";
import type { ServerReport } from "./arrivals.ts";
import type { Interval } from "./bound.ts";
import type { Client, ClientSetup } from "./client.ts";
import { clientModuleOf } from "./client-spec.ts";
import { RaceLimitEnforcer } from "./limit-enforcer.ts";
import { callHosts, type HostsReport } from "./many-hosts.ts";
import { roleOfPath, WARM_PATH } from "./paths.ts";
import { randomFrom } from "./random.ts";
import { ruleOf, type Scenario } from "./scenario.ts";
import { ScriptedWire } from "./scripted-wire.ts";
import { VirtualClock } from "./virtual-clock.ts";
import { fetchAll, type WorkloadTally } from "./workload.ts";

export interface ClientOrder {
  readonly client: string;
  readonly scenario: Scenario;
  /** Index of this process. */
  readonly index: number;
  readonly origin: string;
  readonly seed: string;
  readonly limits: ClientSetup["limits"];
  readonly store?: string;
  /** Time after which it stops and reports. */
  readonly limitMs: number;
}

export interface ClientReport extends WorkloadTally {
  /** By a clock that all processes of the machine share, or by the virtual clock. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly cpuMs: number;
  /** Peak memory of the process, minus its memory before the client was loaded. */
  readonly memoryMb: number;
  readonly stalls: readonly Interval[];
  /** The report of a server in this process (virtual time). */
  readonly server?: ServerReport;
  readonly hosts?: HostsReport;
}

const MB = 1e6;
const WARM_REQUESTS = 2;
// Read before a client replaces it.
const { hrtime } = process;

await main(JSON.parse(process.argv[2] ?? "{}") as ClientOrder);

async function main(order: ClientOrder): Promise<void> {
  // The parent disconnects when it has the report. Timers of other libraries would keep this process alive for an hour.
  process.once("disconnect", () => process.exit());
  collectGarbage("major");
  const idleBytes = process.memoryUsage.rss();
  const { scenario } = order;
  const clock = scenario.isVirtual ? new VirtualClock() : undefined;
  const { open } = await clientModuleOf(order.client);
  const enforcer = new RaceLimitEnforcer(ruleOf(scenario));
  clock?.install();
  const wire = clock
    ? new ScriptedWire(path => enforcer.arrive(clock.nowMs, roleOfPath(path)))
    : scenario.hosts && new ScriptedWire(() => ({ status: 200, headers: {} }));
  const client = await open({
    limits: order.limits,
    random: randomFrom(`${order.seed} ${order.index}`),
    processes: scenario.loads.length,
    ...(order.store !== undefined && { store: order.store }),
    ...(wire && { wire }),
    ...(clock && { time: clock.time() }),
  });
  if (wire === undefined) await warmUp(client, order);
  const go = new Promise(resolve => process.once("message", resolve));
  process.send?.("ready");
  await go;
  const run = await (scenario.hosts ? runHosts(client, scenario.hosts) : runLoad(client, order, clock));
  const memoryMb = Math.max(0, process.resourceUsage().maxRSS * 1024 - idleBytes) / MB;
  const report: ClientReport = { ...run, memoryMb, ...(clock && { server: enforcer.report() }) };
  process.send?.(report);
}

/**
 * Loads code and opens the store before the measurement. Uses another name of the server, which every limiter treats as
 * another host: these requests use no limit, and the connections of the measurement are new.
 */
async function warmUp(client: Client, { origin }: ClientOrder): Promise<void> {
  for (let asked = 0; asked < WARM_REQUESTS; asked += 1)
    await client.get(`${origin.replace("127.0.0.1", "localhost")}${WARM_PATH}`, "metadata");
}

type RunFigures = Omit<ClientReport, "memoryMb" | "server">;

async function runLoad(client: Client, order: ClientOrder, clock: VirtualClock | undefined): Promise<RunFigures> {
  const { scenario, origin, index, limitMs } = order;
  const nowMs = () => clock?.nowMs ?? machineMs();
  const tally: WorkloadTally = { succeeded: 0, failed: 0, putBack: 0 };
  const load = scenario.loads[index] ?? {};
  const { metadata = 0, artifact = 0 } = load;
  const before = process.cpuUsage();
  const startedMs = nowMs();
  const stalls = stallsOf(scenario, startedMs);
  const work = fetchAll(client, origin, load, tally);
  if (clock) await clock.runUntil(work);
  else await Promise.race([work, new Promise(resolve => setTimeout(resolve, limitMs))]);
  const endedMs = nowMs();
  const { user, system } = process.cpuUsage(before);
  // Deliberate blocks of the event loop are not CPU time of the client.
  const stalledMs = stalls.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
  const failed = metadata + artifact - tally.succeeded;
  return { ...tally, failed, startedMs, endedMs, cpuMs: (user + system) / 1000 - stalledMs, stalls };
}

async function runHosts(client: Client, hosts: number): Promise<RunFigures> {
  const before = process.cpuUsage();
  const startedMs = machineMs();
  const met = await callHosts(client, hosts);
  const endedMs = startedMs + met.tookMs;
  const { user, system } = process.cpuUsage(before);
  return {
    succeeded: met.met,
    failed: 0,
    putBack: 0,
    startedMs,
    endedMs,
    cpuMs: (user + system) / 1000,
    stalls: [],
    hosts: met,
  };
}

/** Blocks the event loop at the given times, and records when it did. */
function stallsOf({ stalls = [] }: Scenario, startedMs: number): Interval[] {
  const stood: Interval[] = [];
  for (const { atMs, ms } of stalls) {
    setTimeout(() => {
      const fromMs = machineMs();
      while (machineMs() < fromMs + ms);
      stood.push({ fromMs: fromMs - startedMs, toMs: machineMs() - startedMs });
    }, atMs);
  }
  return stood;
}

/** Milliseconds of a clock that all processes of the machine share. */
function machineMs(): number {
  return Number(hrtime.bigint()) / 1e6;
}
