import assert from "node:assert/strict";
import { test } from "node:test";
import { getGlobalDispatcher, MockAgent, setGlobalDispatcher } from "undici";
import { createHub } from "../../src/index.ts";

/** A MockAgent that answers `count` requests for https://api.example.org/works, and permits no connection. */
function mockedApi(count: number): MockAgent {
  const agent = new MockAgent();
  agent.disableNetConnect();
  agent.get("https://api.example.org").intercept({ path: "/works" }).reply(200, "mocked").times(count);
  return agent;
}

test("a global MockAgent that a hub gets as its dispatcher answers fetch, request and the installed fetch", async t => {
  const before = getGlobalDispatcher();
  const agent = mockedApi(3);
  setGlobalDispatcher(agent);
  t.after(() => setGlobalDispatcher(before));
  const hub = await createHub({ env: {}, cache: false, dispatcher: getGlobalDispatcher() });
  t.after(() => hub.close());
  const url = "https://api.example.org/works";
  assert.equal(await (await hub.fetch(url)).text(), "mocked");
  assert.equal(await (await hub.request(url)).body.text(), "mocked");
  const uninstall = hub.install();
  t.after(uninstall);
  assert.equal(await (await fetch(url)).text(), "mocked");
  agent.assertNoPendingInterceptors();
});

test("limits, breakers and events see the answers of a MockAgent as those of a server", async t => {
  const agent = new MockAgent();
  agent.disableNetConnect();
  agent
    .get("https://api.example.org")
    .intercept({ path: "/works" })
    .reply(429, "slow down", {
      headers: { "retry-after": "60" },
    });
  const events: string[] = [];
  const hub = await createHub({
    env: {},
    retry: false,
    dispatcher: agent,
    telemetry: [event => events.push(event.event_type)],
  });
  t.after(() => hub.close());
  assert.equal((await hub.fetch("https://api.example.org/works")).status, 429);
  await assert.rejects(hub.fetch("https://api.example.org/works"), {
    code: "DOCSTOKG_BREAKER_OPEN",
    host: "api.example.org",
  });
  assert.equal(events.filter(type => type === "http_attempt").length, 1);
});

test("a request that a MockAgent does not expect fails with its error, and no connection is opened", async t => {
  const hub = await createHub({ env: {}, retry: false, dispatcher: mockedApi(1) });
  t.after(() => hub.close());
  await assert.rejects(hub.fetch("https://other.example.org/"), error => {
    const cause = (error as Error).cause as { readonly code?: string };
    assert.equal(cause.code, "UND_MOCK_ERR_MOCK_NOT_MATCHED");
    return true;
  });
});

test("closing a hub leaves the MockAgent open", async () => {
  const agent = mockedApi(1);
  const hub = await createHub({ env: {}, dispatcher: agent });
  await hub.close();
  const next = await createHub({ env: {}, dispatcher: agent });
  assert.equal((await next.fetch("https://api.example.org/works")).status, 200);
  await next.close();
});
