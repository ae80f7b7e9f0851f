/** Bytes per host after one successful call, after one failed call, and with an open circuit. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { scatteredHosts } from "../kit/hosts.ts";
import type { TableCell } from "../kit/report.ts";
import { FAIL_MAX, fail, registryOf, succeed } from "./ours.ts";
import { cockatielCircuit, OpossumFamily } from "./peers.ts";
import { task } from "./task.ts";

interface KeyedBreakerSpec {
  readonly name: string;
  /** Enough to measure the cost of one host, and not too many for the memory of the machine. */
  readonly hosts: number;
  open(): KeyedBreaker;
}

interface KeyedBreaker {
  call(host: string, isWell: boolean): unknown;
}

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const rows: TableCell[][] = [];
  for (const { name, hosts, open } of specs()) {
    const count = isQuick ? hosts / 10 : hosts;
    // Not measured: objects that are created once do not belong to a host.
    await hostBytes(open, 100, FAIL_MAX, false);
    const healthy = await hostBytes(open, count, 1, true);
    const failed = await hostBytes(open, count, 1, false);
    const opened = await hostBytes(open, count, FAIL_MAX, false);
    rows.push([name, count, healthy, failed, opened]);
  }
  return {
    tables: [
      {
        title: "bytes per host, without its name",
        notes: [
          "the peers are a Map with one circuit for each host; entries are never removed, unless the user of the library does it",
        ],
        columns: ["contestant", "hosts", "called once", "failed once", "open"],
        rows,
      },
    ],
    figures: [],
  };
}

function specs(): readonly KeyedBreakerSpec[] {
  return [
    { name: "docstokg BreakerRegistry", hosts: 100_000, open: ours },
    {
      name: "cockatiel ConsecutiveBreaker",
      hosts: 100_000,
      open: perHost(() => {
        const circuit = cockatielCircuit();
        return isWell => circuit.execute(() => task(isWell));
      }),
    },
    {
      name: "opossum, lightest options",
      hosts: 10_000,
      open() {
        const family = new OpossumFamily();
        return perHost(() => {
          const circuit = family.circuit();
          return isWell => circuit.fire(isWell);
        })();
      },
    },
  ];
}

function ours(): KeyedBreaker {
  const registry = registryOf();
  return { call: (host, isWell) => (isWell ? succeed(registry, host) : fail(registry, host)) };
}

function perHost(make: () => (isWell: boolean) => Promise<void>): () => KeyedBreaker {
  return () => {
    const made = new Map<string, (isWell: boolean) => Promise<void>>();
    return {
      call(host, isWell) {
        const known = made.get(host) ?? make();
        made.set(host, known);
        return known(isWell).catch(() => undefined);
      },
    };
  };
}

async function hostBytes(open: () => KeyedBreaker, count: number, calls: number, isWell: boolean): Promise<number> {
  const hosts = scatteredHosts(count);
  const { bytes } = await retained(async () => {
    const kept = open();
    for (const host of hosts) for (let made = 0; made < calls; made += 1) await kept.call(host, isWell);
    return kept;
  });
  return bytes / count;
}
