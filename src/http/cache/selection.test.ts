import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type Handler, serve, until } from "../../../test/http/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import type { IdentitiesOptions } from "../../policy/identity-options.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { createHub } from "../create-hub.ts";
import type { Hub } from "../hub.ts";
import type { HubOptions } from "../hub-options.ts";

type HostIdentity = NonNullable<IdentitiesOptions["hosts"]>[string];

/** Hubs on one cache file, one after the other: each finds what the others have stored. */
async function world(t: TestContext, identity: HostIdentity, handler: Handler) {
  const server = await serve(t, handler);
  const file = join(temporaryFolder("selection"), "cache.db");
  const withToken = async (token: string | undefined, options: HubOptions = {}) => {
    const env = token === undefined ? {} : { MY_TOKEN: token };
    const policy = { identities: { hosts: { "127.0.0.1": identity } } };
    const hub = await createHub({ env, policy, cache: `sqlite:${file}`, time: new FakeTime(), ...options });
    t.after(() => hub.destroy());
    return hub;
  };
  const get = async (hub: Hub, options: Parameters<Hub["fetch"]>[1] = {}) => {
    const response = await hub.fetch(`${server.origin}/account`, options);
    return `${response.status} ${await response.text()}: ${response.headers.get("cache-status")}`;
  };
  return { server, withToken, get };
}

const MISS = "docstokg; fwd=miss";
const HIT = "docstokg; hit";

/** What the server knows of its caller: by its header, its query or its User-Agent. */
const account: Handler = ({ headers, url }, response) => {
  const caller = headers.authorization ?? headers["x-client"] ?? new URL(url ?? "", "http://x").searchParams.get("key");
  response.setHeader("cache-control", "max-age=600").writeHead(caller === null ? 404 : 200);
  response.end(caller === null ? "no account" : `account of ${caller}`);
};

for (const [place, identity] of Object.entries({
  header: { headers: { authorization: "{MY_TOKEN}" } },
  "header whose name is not that of a credential": { headers: { "x-client": "{MY_TOKEN}" } },
  "query parameter": { query: { key: "{MY_TOKEN}" } },
}))
  test(`a response to the credential that an identity adds as a ${place} is served to this credential only`, async t => {
    const { withToken, get } = await world(t, identity, account);
    const [none, alice, bob] = [await withToken(undefined), await withToken("alice"), await withToken("bob")];
    for (const [hub, text] of [
      [none, "404 no account"],
      [alice, "200 account of alice"],
      [bob, "200 account of bob"],
    ] as const) {
      assert.equal(await get(hub), `${text}: ${MISS}`);
      assert.equal(await get(hub), `${text}: ${HIT}`);
      assert.equal(await get(hub, { offline: true }), `${text}: ${HIT}`);
    }
    assert.equal(await get(none), `404 no account: ${HIT}`);
    assert.equal(await get(alice), `200 account of alice: ${HIT}`);
  });

test("a call that gives the credential itself gets the response that was stored for it", async t => {
  const { withToken, get } = await world(t, { headers: { authorization: "{MY_TOKEN}" } }, account);
  await get(await withToken("alice"));
  const bob = await withToken("bob");
  assert.equal(await get(bob, { headers: { authorization: "alice" } }), `200 account of alice: ${HIT}`);
});

test("after a reload with another key, stored responses and requests in flight of the old key are not used", async t => {
  const held: (() => void)[] = [];
  const holding: Handler = (request, response, number) =>
    number === 2 ? void held.push(() => account(request, response, number)) : account(request, response, number);
  const { server, withToken, get } = await world(t, { headers: { authorization: "{MY_TOKEN}" } }, holding);
  const env = { MY_TOKEN: "old" };
  const hub = await withToken(undefined, { env });
  assert.equal(await get(hub), `200 account of old: ${MISS}`);
  const pending = get(hub, { cache: "reload" });
  await until(() => held.length === 1);
  env.MY_TOKEN = "new";
  await hub.reload();
  assert.equal(await get(hub), `200 account of new: ${MISS}`);
  held[0]?.();
  assert.equal(await pending, `200 account of old: ${MISS}`);
  assert.equal(
    await get(hub),
    `200 account of new: ${HIT}`,
    "the later response of the old key is not stored for the new one",
  );
  assert.equal(server.requests.length, 3);
});

test("a response that is retried with another key after a reload is stored for the key that was sent", async t => {
  const env = { MY_TOKEN: "old" };
  const time = new FakeTime();
  const failing: Handler = (request, response, number) =>
    number === 1 ? response.writeHead(500).end() : account(request, response, number);
  const { withToken, get } = await world(t, { headers: { authorization: "{MY_TOKEN}" } }, failing);
  const hub = await withToken(undefined, { env, time, retry: { attempts: 2 } });
  const pending = get(hub);
  await until(() => time.armedTimers > 0);
  env.MY_TOKEN = "new";
  await hub.reload();
  await time.advance(60_000);
  assert.equal(await pending, `200 account of new: ${MISS}`);
  assert.equal(await get(hub), `200 account of new: ${HIT}`);
  assert.equal(await get(await withToken("old", { time })), `200 account of old: ${MISS}`);
});

test("Vary: user-agent separates hubs with different User-Agents, and only with Vary", async t => {
  const agents: Handler = ({ headers, url }, response) => {
    if (url === "/account") response.setHeader("vary", "user-agent");
    response.setHeader("cache-control", "max-age=600").end(headers["user-agent"]);
  };
  const { withToken, get, server } = await world(t, {}, agents);
  const [first, second] = [
    await withToken("", { userAgent: "first/1" }),
    await withToken("", { userAgent: "second/1" }),
  ];
  assert.equal(await get(first), `200 first/1: ${MISS}`);
  assert.equal(await get(second), `200 second/1: ${MISS}`);
  assert.equal(await get(first), `200 first/1: ${HIT}`);
  const plain = async (hub: Hub) => (await hub.fetch(`${server.origin}/plain`)).text();
  assert.equal(await plain(first), "first/1");
  assert.equal(await plain(second), "first/1");
});

test("responses of virtual hosts, which only the Host header names, are kept apart", async t => {
  const { server, withToken } = await world(t, {}, ({ headers }, response) => {
    response.setHeader("cache-control", "max-age=600").end(`site of ${headers.host}`);
  });
  const hub = await withToken(undefined);
  const own = server.origin.slice("http://".length);
  const get = async (host: string | undefined) => {
    const { headers, body } = await hub.request(server.origin, host === undefined ? {} : { headers: { host } });
    return [await body.text(), headers["cache-status"]];
  };
  assert.deepEqual(await get(undefined), [`site of ${own}`, MISS]);
  for (const host of ["a.example", "b.example"]) {
    assert.deepEqual(await get(host), [`site of ${host}`, MISS]);
    assert.deepEqual(await get(host), [`site of ${host}`, HIT]);
  }
  assert.deepEqual(await get(undefined), [`site of ${own}`, HIT]);
  assert.deepEqual(await get(own), [`site of ${own}`, HIT], "it names the host of the URL");
});
