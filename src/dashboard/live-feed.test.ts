import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { test } from "node:test";
import { exampleSource } from "../../test/dashboard/example-source.ts";
import { dashboardFor, listen, openStream, withToken } from "../../test/dashboard/served-dashboard.ts";
import { serve } from "../../test/http/kit.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { dashboardOf } from "./dashboard.ts";
import type { DashboardPatch, DashboardState, HostState } from "./dashboard-state.ts";
import type { DashboardSource } from "./source.ts";

test("a stream sends the state once, and then what has changed", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const time = new FakeTime();
  const { hub, dashboard, origin } = await dashboardFor(t, { time });
  const stream = await openStream(t, withToken(dashboard, origin, "/stream"));
  assert.equal(stream.response.headers.get("content-type"), "text/event-stream; charset=utf-8");
  const first = await stream.next();
  assert.equal(first.event, "state");
  const state = first.data as DashboardState;
  assert.deepEqual(state.hosts, []);
  assert.equal(state.about.kind, "hub");

  await (await hub.fetch(server.origin)).text();
  await time.advance(1000);
  const { event, data } = await stream.next();
  const patch = data as DashboardPatch;
  assert.equal(event, "patch");
  assert.deepEqual(
    patch.hosts?.map(({ name }) => name),
    ["127.0.0.1"],
  );
  assert.deepEqual(
    patch.hosts?.[0]?.keys.map(({ role, acquired }) => ({ role, acquired })),
    [{ role: "metadata", acquired: 1 }],
  );
  assert.equal(patch.points?.[0]?.requests, 1);
  assert.equal(patch.run, undefined);

  // Nothing happens for some seconds, then a second host is called: no message in between.
  await time.advance(5000);
  await (await hub.fetch(server.origin.replace("127.0.0.1", "localhost"))).text();
  await time.advance(1000);
  const second = (await stream.next()).data as DashboardPatch;
  assert.ok(
    second.hosts?.some(({ name }) => name === "localhost"),
    JSON.stringify(second),
  );
});

test("while no page is connected, the hub is not read and no timer is set", async t => {
  const time = new FakeTime();
  const { hub, dashboard, origin } = await dashboardFor(t, { time });
  let snapshots = 0;
  const snapshot = hub.snapshot.bind(hub);
  hub.snapshot = () => {
    snapshots += 1;
    return snapshot();
  };
  await time.advance(10_000);
  assert.equal(snapshots, 0);
  const stream = await openStream(t, withToken(dashboard, origin, "/stream"));
  await stream.next();
  await time.advance(3000);
  assert.ok(snapshots >= 2);
});

test("a new page is refused while 32 pages are connected", async t => {
  const { dashboard, origin } = await dashboardFor(t, { time: new FakeTime() });
  const url = withToken(dashboard, origin, "/stream");
  for (let page = 0; page < 32; page += 1) await (await openStream(t, url)).next();
  assert.equal((await fetch(url)).status, 503);
});

test("pages that disconnect at any moment leave no state behind, and the others get their changes", async t => {
  const time = new FakeTime();
  const { hub, dashboard, origin } = await dashboardFor(t, { time });
  const server = await serve(t, (_, response) => response.end("ok"));
  const url = withToken(dashboard, origin, "/stream");
  const stays = await openStream(t, url);
  await stays.next();
  for (let round = 0; round < 20; round += 1) {
    const gone = await openStream(t, url);
    if (round % 2 === 0) await gone.next();
    gone.close();
    await time.advance(1000);
  }
  // More rounds than pages may be connected: each one was forgotten.
  for (let round = 0; round < 40; round += 1) {
    const sent = request(url);
    sent.on("error", () => undefined);
    sent.end();
    if (round % 2 === 0) await once(sent, "response");
    sent.destroy();
  }
  await (await hub.fetch(server.origin)).text();
  await time.advance(1000);
  for (;;) {
    const { data } = await stays.next();
    if ((data as DashboardPatch).hosts?.some(({ name }) => name === "127.0.0.1")) break;
  }
  assert.equal((await fetch(withToken(dashboard, origin, "/state"))).status, 200);
});

test("a page that does not read is disconnected when its unread changes exceed 8 MB, and the others stay", async t => {
  const time = new FakeTime();
  let read = 0;
  const source: DashboardSource = {
    ...exampleSource(),
    // Each state differs by about 2 MB.
    read: async () => {
      read += 1;
      return { ...(await exampleSource().read()), events: [], run: null, hosts: [bigHost(read)] };
    },
  };
  const dashboard = dashboardOf(source, { time });
  t.after(() => dashboard.close());
  const closed = Promise.withResolvers<number>();
  const origin = await listen(t, (incoming, response) => {
    if (incoming.headers["x-slow"] === "yes") response.on("close", () => closed.resolve(response.writableLength));
    dashboard(incoming, response);
  });
  const url = withToken(dashboard, origin, "/stream");
  const reader = await openStream(t, url);
  await reader.next();
  const slow = request(url, { headers: { "x-slow": "yes" } }).on("error", () => undefined);
  slow.end();
  const [response] = await once(slow, "response");
  response.on("error", () => undefined).pause();
  let isClosed = false;
  void closed.promise.then(() => {
    isClosed = true;
  });
  for (let second = 0; second < 60 && !isClosed; second += 1) {
    await time.advance(1000);
    await reader.next();
  }
  assert.ok((await closed.promise) < 12_000_000);
  await time.advance(1000);
  assert.equal((await reader.next()).event, "patch");
});

test("a page gets a state of more than 8 MB and the changes since then, however slowly it reads the state", async t => {
  const time = new FakeTime();
  const example = exampleSource();
  const { run: _, ...state } = await example.read();
  let calls = 0;
  const hosts = [...Array(10).keys()].map(number => ({ ...bigHost(number), name: `h-${number}.example` }));
  const read = async () => ({ ...state, run: null, hosts, totals: { ...state.totals, calls } });
  const dashboard = dashboardOf({ ...example, read }, { time });
  t.after(() => dashboard.close());
  const stream = await openStream(t, withToken(dashboard, await listen(t, dashboard), "/stream"));
  // The page reads nothing meanwhile.
  for (calls = 1; calls < 5; calls += 1) await time.advance(900);
  const { event, data } = await stream.next();
  assert.equal(event, "state");
  assert.equal((data as DashboardState).hosts.length, 10);
  for (let seen = 0; seen < 4; ) seen = ((await stream.next()).data as DashboardPatch).totals?.calls ?? 0;
});

test("a state that cannot be read is reported without the password of the store", async t => {
  const source: DashboardSource = {
    ...exampleSource(),
    read: () => Promise.reject(new Error("connect redis://me:hunter2@store:6379 failed")),
  };
  const dashboard = dashboardOf(source, { time: new FakeTime() });
  t.after(() => dashboard.close());
  const origin = await listen(t, dashboard);
  const state = (await (await fetch(withToken(dashboard, origin, "/state"))).json()) as DashboardState;
  assert.equal(
    state.trouble,
    "The state cannot be read now, and the page shows the last one: connect redis://…@store:6379 failed",
  );
});

test("a source that does not answer is reported to the pages, and so is its return", async t => {
  const time = new FakeTime();
  const example = exampleSource();
  const state = await example.read();
  let answer = async () => state;
  const source: DashboardSource = { ...example, read: () => answer() };
  const dashboard = dashboardOf(source, { time });
  t.after(() => dashboard.close());
  const stream = await openStream(t, withToken(dashboard, await listen(t, dashboard), "/stream"));
  await stream.next();
  const back = Promise.withResolvers<typeof state>();
  answer = () => back.promise;
  await time.advance(900 + 3000);
  assert.deepEqual(((await stream.next()).data as DashboardPatch).trouble, lastState("no answer for 3 s"));
  await time.advance(3000);
  assert.deepEqual(((await stream.next()).data as DashboardPatch).trouble, lastState("no answer for 6 s"));
  answer = async () => state;
  back.resolve(state);
  await time.advance(900);
  assert.equal(((await stream.next()).data as DashboardPatch).trouble, null);
});

function lastState(reason: string): string {
  return `The state cannot be read now, and the page shows the last one: ${reason}`;
}

test("close ends the streams of all pages", async t => {
  const { dashboard, origin } = await dashboardFor(t, { time: new FakeTime() });
  const stream = await openStream(t, withToken(dashboard, origin, "/stream"));
  await stream.next();
  await dashboard.close();
  await assert.rejects(stream.next(), /has ended/);
});

/** A host with a long text that differs each time. */
function bigHost(number: number): HostState {
  return { name: "big.example", note: `${number}`.padEnd(2_000_000, "x") } as unknown as HostState;
}

test("a change is read within a second, and a read that takes long is followed by a pause of its length", async t => {
  const time = new FakeTime();
  const startsMs: number[] = [];
  let readMs = 0;
  const example = exampleSource();
  const source: DashboardSource = {
    ...{ about: example.about, actions: undefined, log: example.log, close: () => example.close() },
    explain: () => [],
    setWatched: () => undefined,
    read: async () => {
      startsMs.push(time.monotonicUs() / 1000);
      if (readMs > 0) await time.sleep(readMs);
      return example.read();
    },
  };
  const dashboard = dashboardOf(source, { time });
  t.after(() => dashboard.close());
  const origin = await listen(t, dashboard);
  const stream = await openStream(t, withToken(dashboard, origin, "/stream"));
  await stream.next();
  const pausesMs = () => startsMs.slice(1).map((ms, index) => ms - (startsMs[index] ?? 0));
  await time.advance(2700);
  assert.deepEqual(pausesMs(), [900, 900, 900]);
  readMs = 300;
  await time.advance(1800);
  assert.deepEqual(pausesMs().slice(3), [900, 900]);
  readMs = 2000;
  await time.advance(9000);
  assert.deepEqual(pausesMs().slice(5), [900, 4000, 4000]);
});

test("the effect of an action is read after the action, also if a read has begun before it", async t => {
  const time = new FakeTime();
  const example = exampleSource();
  let calls = 0;
  let delay: Promise<void> | undefined;
  const shown: number[] = [];
  const source: DashboardSource = {
    ...example,
    read: async () => {
      const totals = { calls, inFlight: 0, waiting: 0 };
      await delay;
      shown.push(totals.calls);
      return { ...(await example.read()), totals };
    },
    actions: {
      names: ["close"],
      run: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        delay = promise;
        await time.advance(900);
        calls = 1;
        setImmediate(resolve);
        return { isApplied: true, text: "applied" };
      },
    },
  };
  const dashboard = dashboardOf(source, { time });
  t.after(() => dashboard.close());
  const origin = await listen(t, dashboard);
  const stream = await openStream(t, withToken(dashboard, origin, "/stream"));
  const state = (await stream.next()).data as DashboardState;
  const headers = { "content-type": "application/json", origin, "x-docstokg-action": state.about.actionToken };
  const body = JSON.stringify({ action: "close", host: state.hosts[0]?.name, reason: "test" });
  await (await fetch(withToken(dashboard, origin, "/actions"), { method: "POST", headers, body })).text();
  assert.deepEqual(shown.slice(-2), [0, 1]);
});
