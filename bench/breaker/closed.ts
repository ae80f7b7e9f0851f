/** Nanoseconds that a breaker adds to a successful call: with one host and with ten thousand. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { scatteredHosts } from "../kit/hosts.ts";
import { atMost, type BenchTable, type Figure } from "../kit/report.ts";
import { asyncCase, syncCase } from "../kit/timed-case.ts";
import { race, type TimedCase, type TimingResult, timingOptions } from "../kit/timing.ts";
import { guarded, guardedByFinally, registryOf, succeed } from "./ours.ts";
import { cockatielCircuit, finder, OpossumCircuits } from "./peers.ts";
import { task } from "./task.ts";

/** The cases of the targets. Every ratio is relative to the first. */
const OURS = "docstokg allow({ host }), report(success)";
const OURS_AWAITED = "docstokg await guarded(task): using permit, await, report";
const OURS_FINALLY = "docstokg await guarded(task): try, await, report, finally release";
/** Without the parameter: `run` calls it with the permit. */
const plainTask: () => Promise<void> = task;
const OURS_RUN = "docstokg await run({ host }, task)";
const COCKATIEL = "cockatiel await execute(task)";
const COCKATIEL_SYNC = "cockatiel await execute(synchronous task)";
const OPOSSUM = "opossum await fire()";

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const tables: BenchTable[] = [];
  const figures: Figure[] = [];
  for (const count of [1, 10_000]) {
    const hosts = scatteredHosts(count);
    const title = `closed, ${count === 1 ? "1 host" : `${count.toLocaleString("en")} hosts`}`;
    const cases = [...ours(hosts), ...peers(hosts)];
    const result = await race(cases, { ...timingOptions(isQuick), isCpuTime: true });
    tables.push(tableOf(title, cases, result));
    figures.push(...figuresOf(title, result));
  }
  return { tables, figures };
}

/** Each case has its own registry, so that no case uses the state of another. */
function ours(hosts: readonly string[]): readonly TimedCase[] {
  const plain = registryOf();
  const tried = registryOf();
  const judged = registryOf();
  const busy = registryOf();
  const awaited = registryOf();
  const released = registryOf();
  const wrapped = registryOf();
  // A healthy host may be evicted when there are many others; a host with a call in flight is not.
  for (const host of hosts) busy.allow({ host });
  const tryAllow = (host: string) => {
    const answer = tried.tryAllow({ host });
    if (!("report" in answer)) return false;
    answer.report({ outcome: { kind: "success" } });
    return true;
  };
  const judge = (host: string) => {
    const permit = judged.allow({ host });
    permit.report({ outcome: judged.classify({ status: 200 }), status: 200 });
    return true;
  };
  const succeeding = (registry: typeof plain) => (host: string) => {
    succeed(registry, host);
    return true;
  };
  return [
    syncCase({ name: OURS }, hosts, succeeding(plain), true),
    syncCase({ name: `${OURS}, a call under way on each` }, hosts, succeeding(busy), true),
    syncCase({ name: "docstokg tryAllow({ host }), report(success)" }, hosts, tryAllow, true),
    syncCase({ name: "docstokg allow({ host }), report(judge({ status }))" }, hosts, judge, true),
    asyncCase({ name: OURS_AWAITED }, hosts, host => guarded(awaited, host, task), true),
    asyncCase({ name: OURS_RUN }, hosts, host => wrapped.run({ host }, plainTask), true),
    asyncCase({ name: OURS_FINALLY }, hosts, host => guardedByFinally(released, host, task), true),
  ];
}

/** cockatiel has no call that returns at once; a synchronous task is the closest that it has. */
function peers(hosts: readonly string[]): readonly TimedCase[] {
  const cockatiel = finder(hosts, cockatielCircuit);
  const cockatielSync = finder(hosts, cockatielCircuit);
  const opossumCircuits = new OpossumCircuits();
  const opossum = finder(hosts, () => opossumCircuits.circuit());
  const fired = asyncCase({ name: OPOSSUM }, hosts, host => opossum(host).fire(), true);
  return [
    asyncCase({ name: COCKATIEL }, hosts, host => cockatiel(host).execute(() => task()), true),
    asyncCase({ name: COCKATIEL_SYNC }, hosts, host => cockatielSync(host).execute(noop), true),
    {
      ...fired,
      run(calls) {
        opossumCircuits.rotateWhenDue();
        return fired.run(calls);
      },
    },
    asyncCase({ name: "nothing: await task()" }, hosts, () => task(), true),
  ];
}

function tableOf(title: string, cases: readonly TimedCase[], result: TimingResult): BenchTable {
  return {
    title,
    notes: [
      "task is an async function that does nothing; what is awaited includes it",
      "many hosts: peers through a Map; ours keeps the first 16,384 healthy hosts",
    ],
    columns: ["library", "ns/call", "times ours"],
    rows: cases.map(({ name }) => [name, result.ns(name), result.ratio(name, OURS)]),
  };
}

function figuresOf(title: string, result: TimingResult): readonly Figure[] {
  const figure = (name: string, peer: string) => atMost(`${title}: ${name} / ${peer}`, result.ratio(name, peer), 1);
  return [
    ...[COCKATIEL, COCKATIEL_SYNC, OPOSSUM].map(peer => figure(OURS, peer)),
    // The same on both sides: a task that returns a promise.
    ...[OURS_AWAITED, OURS_RUN, OURS_FINALLY].flatMap(name => [COCKATIEL, OPOSSUM].map(peer => figure(name, peer))),
  ];
}

function noop(): void {
  // Only the breaker is timed.
}
