import assert from "node:assert/strict";
import { test } from "node:test";
import { key } from "../../test/dashboard/facts.ts";
import { Observer } from "../http/observer.ts";
import { loadPolicy } from "../policy/load.ts";
import { publishedPolicyOf } from "../policy/published-policy.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { POLICY_PREFIX, PROCESS_PREFIX, PROCESS_RECORD_US } from "../stores/process-record.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { StoreSource } from "./store-source.ts";

/** A store with processes that wait for a limit of the host `<id>.example`. */
function startStore() {
  const time = new FakeTime();
  const store = new MemoryStore(time).member("command");
  const write = (name: string, next: object) =>
    store.change(name, ({ nowUs }) => ({
      record: { next, keepUntilUs: nowUs + PROCESS_RECORD_US },
      result: undefined,
    }));
  const publish = async (id: string, configHash: string, windowFailures = 0, host = `${id}.example`) => {
    const constraint = { kind: "window", owner: host, limit: "1/HOUR" } as const;
    const keys = [key(host, { constraint, estimatedWaitMs: 60_000 })];
    const hosts = windowFailures === 0 ? [] : [{ host, windowFailures }];
    const snapshot = { calls: 0, inFlight: 0, waiting: 0, keys, hosts };
    const record = { pid: 1, machine: "m", program: "p", startedMs: 0, writtenMs: time.wallMs(), snapshot, configHash };
    await write(`${PROCESS_PREFIX}${id}`, record);
  };
  const publishPolicy = async (hash: string, env: Readonly<Record<string, string>>) => {
    await write(`${POLICY_PREFIX}${hash}`, publishedPolicyOf(await loadPolicy({ env })) ?? assert.fail());
  };
  return { time, observer: new Observer(store), publish, publishPolicy };
}

test("the source of a limit is that of the policy of its process, or of the command if it has published none", async () => {
  const { time, observer, publish, publishPolicy } = startStore();
  const policy = await loadPolicy({ env: {} });
  const source = new StoreSource({ observer, operator: undefined, policy, storeName: "x", time });
  await publishPolicy("1", { DOCSTOKG_RLIMITS: "a.example:metadata=rates:1/HOUR" });
  await publishPolicy("2", { "DOCSTOKG_RLIMIT__b.example__metadata": "rates:1/HOUR" });
  await publish("a", "1");
  await publish("b", "2");
  await publish("c", "3");
  const shown = async () =>
    Object.fromEntries((await source.read()).hosts.map(({ name, keys: [first] }) => [name, first?.decidedBy]));
  const before = await shown();
  assert.equal(before["a.example"], "DOCSTOKG_RLIMITS");
  assert.equal(before["b.example"], "DOCSTOKG_RLIMIT__b.example__metadata");
  assert.equal(before["c.example"], "built-in default");
  await publishPolicy("3", { DOCSTOKG_RLIMITS: "c.example:metadata=rates:1/HOUR" });
  assert.equal((await shown())["c.example"], "DOCSTOKG_RLIMITS");
});

test("requests in flight are shown with the slots of all processes, or those that they share", async () => {
  const { time, observer, publish, publishPolicy } = startStore();
  const policy = await loadPolicy({ env: {} });
  const source = new StoreSource({ observer, operator: undefined, policy, storeName: "x", time });
  await publishPolicy("1", { DOCSTOKG_RLIMITS: "a.example:metadata=max_concurrent:100" });
  await publishPolicy("2", { DOCSTOKG_RLIMITS: "a.example:metadata=max_concurrent:100,shared:true" });
  const slots = async (hash: string) => {
    await publish("a", hash);
    await publish("a2", hash, 0, "a.example");
    return (await source.read()).hosts[0]?.keys[0]?.maxConcurrent;
  };
  assert.equal(await slots("1"), 200);
  assert.equal(await slots("2"), 100);
});

test("recent failures are counted as long as the rolling window of the processes is", async () => {
  const { time, observer, publish, publishPolicy } = startStore();
  const policy = await loadPolicy({ env: {} });
  const source = new StoreSource({ observer, operator: undefined, policy, storeName: "x", time });
  await publishPolicy("1", { DOCSTOKG_BREAKER_ADV__ROLLING: "window:50" });
  await publish("a", "1", 2);
  const failures = async () => (await source.read()).hosts.map(({ windowFailures }) => windowFailures);
  await time.advance(49_000);
  assert.deepEqual(await failures(), [2]);
  await time.advance(1000);
  assert.deepEqual(await failures(), [0]);
});
