/** Bytes per key: idle after one request, and busy with a full hour. */
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { retained } from "../kit/heap.ts";
import { atMost, type TableCell } from "../kit/report.ts";
import { SkippingTime } from "../kit/skipping-time.ts";
import { type KeyedLimiterSpec, peerLimiterSpecs } from "./keyed-limiters.ts";
import { DEFAULT_RATES, limiterOf } from "./ours.ts";

const SECOND_LIMIT = 10;
const HOUR_LIMIT = 5000;
/** One second and its guard: then the next ten requests are allowed. */
const STEP_US = 1_025_000;
const BUSY_BYTES_MAX = 3072;
const IDLE_BYTES_MAX = 200;
const MILLION_MB_MAX = 300;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const scale = isQuick ? 0.1 : 1;
  const busyBytes = await busyKeyBytes(2000 * scale);
  const idleBytes = await idleKeyBytes(100_000 * scale);
  const rows: TableCell[][] = [[`docstokg RateLimiter, ${DEFAULT_RATES}`, idleBytes, busyBytes]];
  for (const spec of peerLimiterSpecs()) rows.push([spec.name, ...(await peerBytes(spec, scale))]);

  const hosts = 1_000_000 * scale;
  const millionRows: TableCell[][] = [];
  const ourMb = await millionMb(hosts, async () => {
    const limiter = limiterOf(DEFAULT_RATES);
    for (let index = 0; index < hosts; index += 1) limiter.tryAcquire({ host: hostName(index) });
    return limiter;
  });
  millionRows.push(["docstokg RateLimiter", ourMb]);
  const [flexible] = peerLimiterSpecs();
  if (flexible !== undefined) {
    const mb = await millionMb(hosts, async () => {
      const kept = flexible.open();
      for (let index = 0; index < hosts; index += 1) await kept.use(hostName(index));
      return kept;
    });
    millionRows.push([flexible.name, mb]);
  }
  return {
    tables: [
      {
        title: "bytes per key, without the host's name",
        notes: [
          "idle: one request; busy: the hour's 5000 have just been sent",
          "a peer without keys is a Map with one instance for each; strict ones keep the any-window law, as we do",
        ],
        columns: ["library", "idle bytes", "busy bytes"],
        rows,
      },
      {
        title: `${hosts.toLocaleString("en")} hosts with one request each, names included`,
        columns: ["library", "MB per million"],
        rows: millionRows,
      },
    ],
    figures: [
      atMost("an idle key after one request, bytes", idleBytes, IDLE_BYTES_MAX),
      atMost("a busy key at 5000/HOUR + 10/SECOND, bytes", busyBytes, BUSY_BYTES_MAX),
      atMost("a million idle hosts, MB", ourMb, MILLION_MB_MAX),
    ],
  };
}

async function idleKeyBytes(keys: number): Promise<number> {
  const hosts = Array.from({ length: keys }, (_, index) => hostName(index));
  const { bytes } = await retained(() => {
    const limiter = limiterOf(DEFAULT_RATES);
    for (const host of hosts) limiter.tryAcquire({ host });
    return limiter;
  });
  return bytes / keys;
}

/** Ten requests per second until the window of the hour refuses. */
async function busyKeyBytes(keys: number): Promise<number> {
  const hosts = Array.from({ length: keys }, (_, index) => hostName(index));
  const { bytes, value: limiter } = await retained(() => {
    const time = new SkippingTime();
    const busy = limiterOf(DEFAULT_RATES, time);
    for (let sent = 0; sent < HOUR_LIMIT; sent += SECOND_LIMIT) {
      for (const host of hosts) for (let made = 0; made < SECOND_LIMIT; made += 1) busy.tryAcquire({ host });
      time.skippedUs += STEP_US;
    }
    return busy;
  });
  const refusal = limiter.check({ host: hostName(0) });
  if (refusal?.constraint.limit !== `${HOUR_LIMIT}/HOUR`) {
    throw new Error(`the hour should be full, but check() returned ${JSON.stringify(refusal)}`);
  }
  return bytes / keys;
}

async function peerBytes({ open, idleKeys, busyKeys }: KeyedLimiterSpec, scale: number): Promise<readonly TableCell[]> {
  const bytesPerKey = async (keys: number, requests: number) => {
    const hosts = Array.from({ length: keys }, (_, index) => hostName(index));
    const { bytes } = await retained(async () => {
      const kept = open();
      for (const host of hosts) for (let made = 0; made < requests; made += 1) await kept.use(host);
      return kept;
    });
    return bytes / keys;
  };
  return [await bytesPerKey(idleKeys * scale, 1), await bytesPerKey(busyKeys, HOUR_LIMIT)];
}

/** Bytes per host, which are MB for a million hosts. Only the measured object keeps the names: they are counted once. */
async function millionMb(hosts: number, build: () => Promise<unknown>): Promise<number> {
  const { bytes } = await retained(build);
  return bytes / hosts;
}

/** A string in one piece, as one that was read: V8 would make it so on its first use as a key, and count it as ours. */
function hostName(index: number): string {
  return Buffer.from(`host-${index}.example.org`).toString();
}
