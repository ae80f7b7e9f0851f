/** Bytes per host after one successful call, after one failed call, and with an open circuit. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { scatteredHosts } from "../kit/hosts.ts";
import type { TableCell } from "../kit/report.ts";
import { FAIL_MAX, fail, registryOf, succeed } from "./ours.ts";
import { cockatielCircuit, OpossumCircuits } from "./peers.ts";
import { task } from "./task.ts";

interface KeyedBreakerSpec {
  readonly name: string;
  /** Enough to measure the cost of one host, and not too many for the memory of the machine. */
  readonly hosts: number;
  open(): KeyedBreaker;
}

interface KeyedBreaker {
  call(host: string, succeeds: boolean): unknown;
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
        columns: ["library", "hosts", "called once", "failed once", "open"],
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
        return succeeds => circuit.execute(() => task(succeeds));
      }),
    },
    {
      name: "opossum, lightest options",
      hosts: 10_000,
      open() {
        const opossumCircuits = new OpossumCircuits();
        return perHost(() => {
          const circuit = opossumCircuits.circuit();
          return succeeds => circuit.fire(succeeds);
        })();
      },
    },
  ];
}

function ours(): KeyedBreaker {
  const registry = registryOf();
  return { call: (host, succeeds) => (succeeds ? succeed(registry, host) : fail(registry, host)) };
}

function perHost(make: () => (succeeds: boolean) => Promise<void>): () => KeyedBreaker {
  return () => {
    const made = new Map<string, (succeeds: boolean) => Promise<void>>();
    return {
      call(host, succeeds) {
        const known = made.get(host) ?? make();
        made.set(host, known);
        return known(succeeds).catch(() => undefined);
      },
    };
  };
}

async function hostBytes(open: () => KeyedBreaker, count: number, calls: number, succeeds: boolean): Promise<number> {
  const hosts = scatteredHosts(count);
  const { bytes } = await retained(async () => {
    const kept = open();
    for (const host of hosts) for (let made = 0; made < calls; made += 1) await kept.call(host, succeeds);
    return kept;
  });
  return bytes / count;
}
