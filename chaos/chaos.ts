/** Runs a fleet of real processes on a store, makes faults, and judges what was written. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { systemTime } from "../src/time/system-time.ts";
import { mostWithin } from "../test/http/write-stamps.ts";
import { ChaosProcess, type PrintedLine } from "./chaos-process.ts";
import type { FaultyStore } from "./fault.ts";
import { type Episode, judge, judgeLines } from "./judge.ts";
import { planOf } from "./plan.ts";
import { LINK_FAULTS, PROCESS_FAULTS } from "./process-faults.ts";
import type { ChaosReport } from "./report.ts";
import { StoreLink } from "./store-link.ts";
import { startCluster } from "./stores/cluster-store.ts";
import { startPostgres } from "./stores/postgres-store.ts";
import { startRedis } from "./stores/redis-store.ts";
import { startSentinels } from "./stores/sentinel-store.ts";
import { startSqlite } from "./stores/sqlite-store.ts";
import type { ServerCounts } from "./strict-server.ts";

const STORES = {
  redis: startRedis,
  sqlite: startSqlite,
  sentinel: startSentinels,
  cluster: startCluster,
  postgres: startPostgres,
};
type StoreKind = keyof typeof STORES;
export const STORE_KINDS = Object.keys(STORES) as readonly StoreKind[];

export interface ChaosOptions {
  readonly store: StoreKind;
  readonly mode: "wait" | "share";
  readonly seed: number;
  /** The run ends after this time, or after `faults`. */
  readonly seconds: number;
  readonly faults: number;
  /** The names of the kinds of faults to make; all of them if it is empty. */
  readonly only: readonly string[];
  /** The shortest and the longest calm time before a fault, in milliseconds. @default [3500, 5000] */
  readonly calmMs?: readonly [number, number];
  readonly onProgress: (line: string) => void;
}

const PROCESSES = 4;
const CALLERS = 8;
const LIMIT = 20;
const WINDOW_US = 1_000_000;
const RATES = `${LIMIT}/SECOND`;
/** Long enough to judge the recovery from the fault before. */
const CALM_MS = [3500, 5000] as const;

export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-chaos-stamps-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  const store = await STORES[options.store]();
  cleanup.defer(() => store.close());
  const server = fork(join(import.meta.dirname, "strict-server.ts"), [RATES]);
  cleanup.defer(() => void server.kill());
  const [origin] = (await once(server, "message")) as [string];

  const printed: PrintedLine[] = [];
  const fleet: ChaosProcess[] = [];
  for (let index = 1; index <= PROCESSES; index += 1) {
    const { mode } = options;
    const stampsFile = join(folder, String(index));
    const worker = { store: store.url, origin, rates: RATES, mode, callers: CALLERS, stampsFile };
    const onLine = (line: PrintedLine) => printed.push(line);
    fleet.push(new ChaosProcess(index, await StoreLink.to(store.ports), worker, onLine));
  }
  cleanup.defer(async () => {
    await Promise.all(fleet.map(process => process.stop()));
  });
  const episodes = await makeFaults(options, store, fleet);
  const [startedUs = 0, endedUs = 0] = [episodes[0]?.endedUs, episodes.at(-1)?.untilUs];
  await Promise.all(fleet.map(process => process.stop()));
  server.send("report");
  const [counts] = (await once(server, "message")) as [ServerCounts];

  const { stampsUs, errors } = await readRecords(fleet.map(({ index }) => join(folder, String(index))));
  const promises = { mode: options.mode, limit: LIMIT, windowUs: WINDOW_US, processes: PROCESSES };
  const judged = judge(episodes, stampsUs, promises);
  return {
    ...{ store: options.store, mode: options.mode, seed: options.seed, processes: PROCESSES, limit: RATES },
    seconds: (endedUs - startedUs) / 1e6,
    most: mostWithin(stampsUs, WINDOW_US),
    written: stampsUs.length,
    utilisation: stampsUs.length / (((endedUs - startedUs) / WINDOW_US) * LIMIT),
    server: counts,
    load: loadavg()[1] ?? 0,
    episodes: judged.episodes.map(episode => ({
      ...episode,
      lines: printed.filter(({ atUs }) => atUs >= episode.beganUs && atUs < episode.untilUs).length,
    })),
    printed,
    errors,
    missing: store.missing,
    broken: [
      ...judged.broken,
      ...judgeLines(episodes, printed),
      ...fleet.flatMap(({ unexpectedExits }) => unexpectedExits),
    ],
  };
}

async function makeFaults(
  { seed, seconds, faults, only, onProgress, calmMs = CALM_MS }: ChaosOptions,
  store: FaultyStore,
  fleet: readonly ChaosProcess[],
): Promise<readonly Episode[]> {
  const all = [...PROCESS_FAULTS, ...(store.ports.length > 0 ? LINK_FAULTS : []), ...store.faults];
  const kinds = only.length === 0 ? all : all.filter(({ name }) => only.includes(name));
  if (only.some(name => all.every(kind => kind.name !== name)))
    throw new RangeError(`--only: expected ${all.map(({ name }) => name).join(", ")}`);
  const startUs = systemTime.machineUs();
  await Promise.all(fleet.map(process => process.start()));
  const begun: Omit<Episode, "untilUs">[] = [
    {
      fault: "start",
      detail: "",
      separated: 0,
      returnsStore: false,
      beganUs: startUs,
      endedUs: systemTime.machineUs(),
    },
  ];
  const untilUs = systemTime.machineUs() + seconds * 1e6;
  for (const { calmMs: beforeMs, fault } of planOf(seed, kinds, fleet, calmMs)) {
    await setTimeout(beforeMs);
    if (begun.length > faults || systemTime.machineUs() >= untilUs) break;
    const { name, detail, separated, returnsStore } = fault;
    const beganUs = systemTime.machineUs();
    onProgress(`${begun.length}: ${name} ${detail}`.trimEnd());
    await fault.begin();
    await setTimeout(fault.durationMs);
    await fault.end();
    begun.push({ fault: name, detail, separated, returnsStore, beganUs, endedUs: systemTime.machineUs() });
    if (fault.repair !== undefined) {
      await setTimeout(calmMs[0]);
      await fault.repair();
    }
  }
  const endUs = systemTime.machineUs();
  return begun.map((episode, index) => ({ ...episode, untilUs: begun[index + 1]?.beganUs ?? endUs }));
}

async function readRecords(files: readonly string[]) {
  const stampsUs: number[] = [];
  const errors: Record<string, number> = {};
  for (const file of files) {
    const text = await readFile(file, "utf8").catch(() => "");
    // A killed process may leave the last line incomplete; its write was not made.
    for (const line of text.split("\n").slice(0, -1)) {
      const [kind, us, ...rest] = line.split(" ");
      if (kind === "write") stampsUs.push(Number(us));
      else {
        const what = kind === "status" ? `answer ${rest.join(" ")}` : rest.join(" ");
        errors[what] = (errors[what] ?? 0) + 1;
      }
    }
  }
  return { stampsUs, errors };
}
