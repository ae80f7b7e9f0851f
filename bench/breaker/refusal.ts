/** Nanoseconds until a call is refused by an open circuit. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { asyncCase, syncCase } from "../kit/timed-case.ts";
import { race, type TimedCase, timingOptions } from "../kit/timing.ts";
import { FAIL_MAX, fail, guarded, RESET_S, registryOf } from "./ours.ts";
import { cockatielCircuit, OpossumCircuits } from "./peers.ts";
import { task } from "./task.ts";

const HOST = "host.example.org";
const OURS = "docstokg tryAllow({ host }), open";

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const cases = [...ours(), ...(await peers())];
  const result = await race(cases, { ...timingOptions(isQuick), isCpuTime: true });
  return {
    tables: [
      {
        title: "refused, 1 host",
        columns: ["library", "ns/call", "times ours"],
        rows: cases.map(({ name }) => [name, result.ns(name), result.ratio(name, OURS)]),
      },
    ],
    figures: [],
  };
}

function ours(): readonly TimedCase[] {
  const open = registryOf();
  for (let failed = 0; failed < FAIL_MAX; failed += 1) fail(open, HOST);
  const cooling = registryOf();
  cooling.open(HOST, RESET_S);
  const tryAllow = (registry: typeof open) => (host: string) => "report" in registry.tryAllow({ host });
  const allow = (host: string) => {
    try {
      open.allow({ host });
      return true;
    } catch {
      return false;
    }
  };
  return [
    syncCase({ name: OURS }, [HOST], tryAllow(open), false),
    syncCase({ name: "docstokg tryAllow({ host }), cooldown" }, [HOST], tryAllow(cooling), false),
    syncCase({ name: "docstokg allow({ host }) throws BreakerOpenError" }, [HOST], allow, false),
    asyncCase({ name: "docstokg await guarded(task) rejects" }, [HOST], host => guarded(open, host, task), false),
  ];
}

async function peers(): Promise<readonly TimedCase[]> {
  const cockatiel = cockatielCircuit();
  const opossum = new OpossumCircuits().circuit();
  for (let failed = 0; failed < FAIL_MAX; failed += 1) {
    await Promise.allSettled([cockatiel.execute(() => task(false)), opossum.fire(false)]);
  }
  return [
    asyncCase(
      { name: "cockatiel await execute(task) rejects with BrokenCircuitError" },
      [HOST],
      () => cockatiel.execute(() => task()),
      false,
    ),
    asyncCase({ name: "opossum await fire() rejects" }, [HOST], () => opossum.fire(), false),
  ];
}
