import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createStoreFile, runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { serve } from "../../../test/http/kit.ts";
import { createHub } from "../../http/create-hub.ts";
import { systemTime } from "../../time/system-time.ts";

/** A hub at work: one call is on its way, two wait for a minute that will not come. */
async function busyHub(t: TestContext, limits: object = {}) {
  const { store } = await temporaryFolder(t);
  const { promise: isEnough, resolve: enough } = Promise.withResolvers<void>();
  const { origin } = await serve(t, (_, response) => void isEnough.then(() => response.end("slow")));
  const metadata = { rates: "1/MINUTE", max_delay_ms: 200_000, ...limits };
  const hub = await createHub({
    env: {},
    store,
    cache: false,
    retry: false,
    policy: { ratelimits: { extends: "none", defaults: { metadata } }, breakers: { extends: "none" } },
  });
  const calls = [1, 2, 3].map(n => hub.fetch(`${origin}/${n}`).then(response => response.status, String));
  t.after(async () => {
    enough();
    await hub.destroy();
    await Promise.all(calls);
  });
  return { store, hub };
}

/** The lanes of the first process that has said something, once there is one. */
async function waitForProcesses(store: string, ...flags: string[]) {
  for (;;) {
    const { stdout } = await runCli(["limits", "show", "--json", "--store", store, ...flags]);
    // Until the hub has opened its store there is no file to look at, and nothing is printed.
    const processes = stdout === "" ? [] : JSON.parse(stdout);
    if (processes.length > 0) return processes;
    await systemTime.sleep(50);
  }
}

test("limits show tells of a hub at work: used, in flight, queue, when and what holds it", async t => {
  const { store } = await busyHub(t);
  const [seen] = await waitForProcesses(store);
  assert.equal(seen.pid, process.pid);
  assert.deepEqual([seen.calls, seen.inFlight, seen.waiting], [3, 1, 2]);
  const [lane] = seen.lanes;
  assert.deepEqual([lane.host, lane.role, lane.waiting, lane.inFlight], ["127.0.0.1", "metadata", 2, 1]);
  assert.deepEqual(lane.constraint, { kind: "window", owner: "127.0.0.1", limit: "1/MINUTE" });

  const { exitCode, stdout } = await runCli(["limits", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /^process +program +machine +calls +in flight +waiting +seen$/m);
  assert.match(stdout, new RegExp(`^${process.pid} +\\S+ +\\S+ +3 +1 +2 +\\S+ m?s ago$`, "m"));
  assert.match(stdout, /^lane +pid +used +flight +queue +free in +newcomer +pace +guard +held by$/m);
  assert.match(
    stdout,
    new RegExp(`^127\\.0\\.0\\.1 metadata +${process.pid} +1/1 MINUTE +1 +2 +\\d+ s +\\d+ s +1 +25 ms +1/MINUTE$`, "m"),
  );
});

test("a cap on slots is shown beside those taken, and named when it is what is in the way", async t => {
  const { store } = await busyHub(t, { rates: "100/SECOND", max_concurrent: 1 });
  await waitForProcesses(store);
  const { stdout } = await runCli(["limits", "show", "--store", store]);
  assert.match(stdout, / 1\/1 +2 +now +now +1 +25 ms +max_concurrent 1$/m);
});

test("--host leaves out the lanes of others", async t => {
  const { store } = await busyHub(t);
  const [seen] = await waitForProcesses(store, "--host", "other.example");
  assert.deepEqual(seen.lanes, []);
  const { stdout } = await runCli(["limits", "show", "--host", "other.example", "--store", store]);
  assert.match(stdout, /\nNo lane has been used\.\n$/);
});

test("where nobody is at work it says so", async t => {
  const { store } = await temporaryFolder(t);
  await createStoreFile(store);
  const { exitCode, stdout } = await runCli(["limits", "show", "--store", store]);
  assert.equal(exitCode, 0);
  assert.match(stdout, /\nNo process has said anything here in the last minute\.\n$/);
});
