/** A run with the shipped limits while two hosts are down, for two-hosts-down.test.ts and bench/soak. */
import type { TestContext } from "node:test";
import { FastestSchedule, type ScheduleBound } from "../../src/cli/docstokg/fastest-schedule.ts";
import { orderFor, RESOLVERS } from "../../src/harvest/resolvers/order.ts";
import { createHub } from "../../src/http/create-hub.ts";
import { loadPolicy } from "../../src/policy/load.ts";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import type { Internet } from "../../src/testing/internet/start-internet.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { databaseOf, runFor } from "./kit.ts";
import { keyOf } from "./processes.ts";

export const DOWN = ["eprints.lakeside.example", "dspace.hillford.example"];
/** Resolvers whose shipped limits allow many works per minute. */
const ASKED = ["pmc", "openalex", "unpaywall", "crossref"];

export interface Harvest {
  readonly works: readonly SimulatedWork[];
  /** Works whose only copies are at the hosts that are down. */
  readonly lost: readonly SimulatedWork[];
  readonly internet: Internet;
  readonly settled: ReadonlyMap<string, string>;
  readonly done: readonly { readonly key: string; readonly sha256: string }[];
  readonly bound: ScheduleBound | undefined;
}

export async function harvest(t: TestContext, count: number): Promise<Harvest> {
  const script = DOWN.map(host => ({ host, effect: "outage" }) as const);
  const internet = await internetFor(t, { seed: 11, works: count * 6, script });
  const askable = internet.works.filter(isUsable);
  const lost = DOWN.flatMap(host => askable.filter(work => isOnlyAt(work, host)).slice(0, 1));
  const others = askable.filter(work => !DOWN.some(host => isOnlyAt(work, host))).slice(0, count - lost.length);
  const works = [...others.slice(0, count / 4), ...lost, ...others.slice(count / 4)];
  if (works.length !== count) throw new Error(`the simulated internet has ${works.length} suitable works`);

  const env = { DOCSTOKG_MAILTO: "test@example.org" };
  const { ratelimits } = await loadPolicy({ env });
  const fastest = new FastestSchedule(ratelimits.resolved, systemTime);
  const network = { ...internet.network, allowPrivate: false };
  const hub = await createHub({ env, network, retry: false, telemetry: [fastest.listener] });
  t.after(() => hub.destroy());
  const resolvers = RESOLVERS.filter(({ name }) => ASKED.includes(name));
  const order = (work: Parameters<typeof orderFor>[0]) => orderFor(work, resolvers);
  const { run, settled } = await runFor(t, temporaryFolder("harvest"), {
    hub,
    resolvers,
    order,
    maxBreakerWaitMs: 5000,
  });
  await run.addWorks(works.map(work => ({ key: keyOf(work), ids: { doi: work.ids.doi } })));
  run.pipeline.inputEnded();
  await run.pipeline.run();
  const rows = databaseOf(run.manifest).prepare("SELECT key, sha256 FROM works WHERE state = 'done'").all();
  const done = rows.map(({ key, sha256 }) => ({ key: String(key), sha256: String(sha256) }));
  return { works, lost, internet, settled, done, bound: fastest.bound() };
}

function isReachable({ isGood, via }: SimulatedWork["copies"][number]): boolean {
  return isGood && via.some(name => ASKED.includes(name));
}

/**
 * Works that the resolvers above know, at hosts whose limits allow so many. Truncated files are left out: three in a row
 * open the circuit of their host for longer than a test may take.
 */
function isUsable({ copies, scenario }: SimulatedWork): boolean {
  const quick = /\.example$|^pmc-oa-opendata/;
  return (
    scenario !== "truncated-once" &&
    copies.some(isReachable) &&
    copies.every(({ url }) => quick.test(new URL(url).host))
  );
}

function isOnlyAt({ copies }: SimulatedWork, host: string): boolean {
  return copies.filter(isReachable).every(({ url }) => new URL(url).host === host);
}
