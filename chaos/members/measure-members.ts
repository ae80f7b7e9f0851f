import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime } from "../../src/time/system-time.ts";
import { RedisServer } from "../../test/stores/redis-server.ts";
import type { ServerCounts } from "../strict-server.ts";
import { openDelayedLink } from "./delayed-link.ts";
import type { MemberCounts, MemberProcessOptions } from "./member-process.ts";
import { ScriptCalls } from "./script-calls.ts";

export interface MembersOptions {
  readonly store: "redis" | "sqlite";
  readonly members: number;
  readonly processes: number;
  readonly rates: string;
  readonly callers: number;
  readonly seconds: number;
  /** The time to the store in each direction: the members are spread evenly over this range. */
  readonly delaysMs: readonly [from: number, to: number];
}

export interface MembersReport {
  /** Requests of each member in the measured time. */
  readonly sent: readonly number[];
  readonly rejected: number;
  readonly busiest: number;
  /** Calls of the lease script, and of the script for records, for each request; undefined for a file. */
  readonly calls: { readonly leases: number; readonly records: number } | undefined;
  readonly errors: readonly string[];
  readonly seconds: number;
}

/** A busy machine must not look like a store that is away. */
const PATIENCE = "/0?timeoutMs=20000";
/** Time in which the members come into balance, before anything is counted. */
const WARM_UP_MS = 5000;

export async function measureMembers(options: MembersOptions): Promise<MembersReport> {
  await using stack = new AsyncDisposableStack();
  const server = fork(join(import.meta.dirname, "../strict-server.ts"), [options.rates]);
  stack.defer(() => server.disconnect());
  const [origin] = (await once(server, "message")) as [string];
  const { stores, port } = await openStores(options, stack);
  const children = await startProcesses(options, stores, origin, stack);
  for (const child of children) child.send("start");
  await systemTime.sleep(WARM_UP_MS);
  const calls = port === undefined ? undefined : new ScriptCalls(port);
  stack.defer(() => calls?.stop());
  const before = await countsOf(children);
  const fromUs = systemTime.monotonicUs();
  await systemTime.sleep(options.seconds * 1000);
  const after = await countsOf(children);
  const seconds = (systemTime.monotonicUs() - fromUs) / 1e6;
  server.send("count");
  const [counted] = (await once(server, "message")) as [ServerCounts];
  const sent = after.sent.map((count, member) => count - (before.sent[member] ?? 0));
  const total = Math.max(
    1,
    sent.reduce((sum, count) => sum + count, 0),
  );
  return {
    sent,
    rejected: counted.rejected,
    busiest: counted.busiest,
    calls: calls && { leases: calls.leases / total, records: calls.records / total },
    errors: after.errors,
    seconds,
  };
}

async function openStores(
  { store, members, delaysMs: [from, to] }: MembersOptions,
  stack: AsyncDisposableStack,
): Promise<{ readonly stores: readonly string[]; readonly port: number | undefined }> {
  if (store === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "docstokg-members-"));
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    return { stores: Array<string>(members).fill(`sqlite:${join(folder, "store.db")}`), port: undefined };
  }
  const redis = await RedisServer.start("--maxclients", "10000");
  stack.defer(() => redis.stop());
  if (to === 0) return { stores: Array<string>(members).fill(redis.url + PATIENCE), port: redis.port };
  const stores: string[] = [];
  for (let member = 0; member < members; member += 1) {
    const delayMs = members === 1 ? to : from + ((to - from) * member) / (members - 1);
    const link = await openDelayedLink(redis.port, delayMs);
    stack.defer(() => link.close());
    stores.push(`redis://127.0.0.1:${link.port}${PATIENCE}`);
  }
  return { stores, port: redis.port };
}

async function startProcesses(
  { processes, rates, callers }: MembersOptions,
  stores: readonly string[],
  origin: string,
  stack: AsyncDisposableStack,
): Promise<readonly ChildProcess[]> {
  const each = Math.ceil(stores.length / processes);
  const children: ChildProcess[] = [];
  for (let first = 0; first < stores.length; first += each) {
    const options: MemberProcessOptions = { stores: stores.slice(first, first + each), first, origin, rates, callers };
    const child = fork(join(import.meta.dirname, "member-process.ts"), [JSON.stringify(options)]);
    children.push(child);
    stack.defer(async () => {
      child.send("stop");
      await once(child, "exit");
    });
  }
  await Promise.all(children.map(child => once(child, "message")));
  return children;
}

async function countsOf(children: readonly ChildProcess[]): Promise<MemberCounts> {
  const counts = await Promise.all(
    children.map(async child => {
      child.send("count");
      const [count] = (await once(child, "message")) as [MemberCounts];
      return count;
    }),
  );
  return { sent: counts.flatMap(({ sent }) => sent), errors: counts.flatMap(({ errors }) => errors) };
}
