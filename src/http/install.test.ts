import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Agent,
  getGlobalDispatcher,
  setGlobalDispatcher,
  fetch as undiciFetch,
  request as undiciRequest,
} from "undici";
import { hubFor, ONE_A_SECOND, only, recordEvents, serve, until } from "../../test/http/kit.ts";
import { FakeTime } from "../testing/fake-time.ts";

for (const order of ["the first one first", "the last one first"]) {
  test(`two installed hubs are uninstalled, ${order}, and the previous dispatchers are restored`, async t => {
    const older = Symbol.for("undici.globalDispatcher.1");
    const places = () => [getGlobalDispatcher(), Reflect.get(globalThis, older)] as const;
    const [before, beforeOlder] = places();
    t.after(() => {
      setGlobalDispatcher(before);
      Reflect.set(globalThis, older, beforeOlder);
    });
    const server = await serve(t, (_, response) => response.end("ok"));
    const [one, two] = [await hubFor(t, { cache: false }), await hubFor(t, { cache: false })];
    const [toOne, toTwo] = [recordEvents(one), recordEvents(two)];
    const passed = async () => {
      await (await fetch(server.origin)).text();
      return [toOne, toTwo].map(events => only(events, "http_request").length);
    };
    const [leaveOne, leaveTwo] = [one.install(), two.install()];
    assert.deepEqual(await passed(), [0, 1], "the hub that was installed last gets the requests");
    const isLastFirst = order === "the last one first";
    const ways = isLastFirst ? [leaveTwo, leaveOne] : [leaveOne, leaveTwo];
    ways[0]?.();
    const after = isLastFirst ? [1, 1] : [0, 2];
    assert.deepEqual(await passed(), after, "the other hub gets the requests");
    ways[1]?.();
    assert.deepEqual(places(), [before, beforeOlder]);
    assert.deepEqual(await passed(), after, "no hub gets the requests");
  });
}

test("an installed hub waits without a bound, unless install or the defaults of the hub give maxWaitMs", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const cases = [
    [{}, {}, "waits"],
    [{}, { partition: "tenant" }, "waits"],
    [{}, { maxWaitMs: undefined }, "waits"],
    [{ idempotent: true }, { maxBreakerWaitMs: 5 }, "waits"],
    [{ maxWaitMs: 100 }, {}, "refused"],
    [{ maxWaitMs: 100 }, { partition: "tenant" }, "refused"],
    [{}, { maxWaitMs: 100 }, "refused"],
    [{ maxWaitMs: 100 }, { maxWaitMs: 900 }, "waits"],
  ] as const;
  for (const [defaults, call, expected] of cases) {
    const time = new FakeTime();
    const hub = await hubFor(t, { time, defaults, cache: false, limits: ONE_A_SECOND });
    const uninstall = hub.install(call);
    await (await fetch(server.origin)).text();
    await time.advance(200);
    const second = fetch(server.origin).then(
      () => "waits",
      () => "refused",
    );
    if (expected === "waits") await until(() => hub.snapshot().waiting === 1);
    await time.advance(800);
    assert.equal(await second, expected, JSON.stringify([defaults, call]));
    uninstall();
  }
});

test("maxWaitMs of install bounds the wait for an open circuit too", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  hub.breakers.open("127.0.0.1", { seconds: 10 });
  const uninstall = hub.install({ maxWaitMs: 100 });
  await assert.rejects(fetch(server.origin));
  uninstall();
  assert.equal(server.requests.length, 0);
});

test("uninstalling leaves a dispatcher that other code has set, in each place on its own", async t => {
  const older = Symbol.for("undici.globalDispatcher.1");
  const [before, beforeOlder] = [getGlobalDispatcher(), Reflect.get(globalThis, older)];
  t.after(() => {
    setGlobalDispatcher(before);
    Reflect.set(globalThis, older, beforeOlder);
  });
  const hub = await hubFor(t);
  const other = new Agent();
  t.after(() => other.close());

  const uninstall = hub.install();
  // As setGlobalDispatcher of undici 5 to 7 does, which knows only this place.
  Reflect.set(globalThis, older, other);
  uninstall();
  assert.equal(Reflect.get(globalThis, older), other);
  assert.equal(getGlobalDispatcher(), before);

  const uninstallAgain = hub.install();
  setGlobalDispatcher(other);
  const wrapped = Reflect.get(globalThis, older);
  uninstallAgain();
  assert.equal(getGlobalDispatcher(), other);
  assert.equal(Reflect.get(globalThis, older), wrapped);
});

for (const order of ["the first one first", "the last one first"]) {
  test(`after hubs were uninstalled below a dispatcher of other code, its requests do not reach them, ${order}`, async t => {
    const older = Symbol.for("undici.globalDispatcher.1");
    const [before, beforeOlder] = [getGlobalDispatcher(), Reflect.get(globalThis, older)];
    t.after(() => {
      setGlobalDispatcher(before);
      Reflect.set(globalThis, older, beforeOlder);
    });
    const server = await serve(t, (_, response) => response.end("ok"));
    const [one, two] = [await hubFor(t, { cache: false }), await hubFor(t, { cache: false })];
    const [toOne, toTwo] = [recordEvents(one), recordEvents(two)];
    const kept = [one.install(), two.install()];
    // As a library does that adds an interceptor to the requests of the process.
    let composed = 0;
    const interceptor = getGlobalDispatcher().compose(dispatch => (options, handler) => {
      composed += 1;
      return dispatch(options, handler);
    });
    setGlobalDispatcher(interceptor);
    const sendAll = async () => {
      assert.equal(await (await fetch(server.origin)).text(), "ok");
      assert.equal(await (await undiciFetch(server.origin)).text(), "ok");
      assert.equal(await (await undiciRequest(server.origin)).body.text(), "ok");
      return [toOne, toTwo].map(events => only(events, "http_request").length);
    };
    assert.deepEqual(await sendAll(), [0, 3]);
    if (order === "the last one first") kept.reverse();
    for (const uninstall of kept) uninstall();
    await one.close();
    await two.close();
    assert.deepEqual(await sendAll(), [0, 3]);
    assert.equal(composed, 6);
  });
}

test("a redirect of a fetch that began before the hub was uninstalled and closed passes the hub, without its credentials", async t => {
  const keys: unknown[] = [];
  const other = await serve(t, (request, response) => {
    keys.push(request.headers["x-api-key"]);
    response.end("ok");
  });
  let answer: (() => unknown) | undefined;
  const server = await serve(t, (_, response) => {
    answer = () => response.writeHead(302, { location: other.origin }).end();
  });
  const hub = await hubFor(t, { cache: false });
  const events = recordEvents(hub);
  const uninstall = hub.install();
  const got = fetch(server.origin, { headers: { "x-api-key": "secret" } });
  await until(() => answer !== undefined);
  uninstall();
  const closed = hub.close();
  answer?.();
  assert.equal(await (await got).text(), "ok");
  await closed;
  assert.deepEqual(keys, [undefined]);
  assert.equal(only(events, "http_request").length, 2);
});

test("requests through a dispatcher of an uninstalled hub that a library has kept go to the one before it", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { cache: false });
  const uninstall = hub.install();
  const kept = getGlobalDispatcher();
  uninstall();
  await hub.close();
  const { body } = await undiciRequest(server.origin, { dispatcher: kept });
  assert.equal(await body.text(), "ok");
});

test("calling an uninstall function twice does not uninstall another hub", async t => {
  const before = getGlobalDispatcher();
  const hubs = [await hubFor(t), await hubFor(t), await hubFor(t)];
  const [first, second, third] = hubs.map(hub => hub.install());
  for (const uninstall of [first, first, second, third]) uninstall?.();
  assert.equal(getGlobalDispatcher(), before);
});

test("an installed hub gets every fetch of the process, and uninstalling restores the previous dispatchers", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  const events = recordEvents(hub);
  const uninstall = hub.install();
  await (await fetch(server.origin)).text();
  await (await undiciFetch(server.origin)).text();
  await (await undiciRequest(server.origin)).body.text();
  assert.equal(only(events, "http_request").length, 3);
  uninstall();
  await (await fetch(server.origin)).text();
  await (await undiciRequest(server.origin)).body.text();
  assert.equal(only(events, "http_request").length, 3);
});

test("an installed hub lets a program wait instead of refusing its requests", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, {
    time,
    cache: false,
    limits: { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } },
  });
  t.after(hub.install());
  await fetch(server.origin);
  const later = fetch(server.origin);
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1000);
  assert.equal((await later).status, 200);
});
