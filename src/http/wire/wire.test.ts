import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createSecureServer, type Http2ServerRequest } from "node:http2";
import {
  type AddressInfo,
  createServer as createTcpServer,
  getDefaultAutoSelectFamily,
  type LookupFunction,
  type Server,
  type Socket,
  setDefaultAutoSelectFamily,
} from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { type Agent, type Dispatcher, Dispatcher1Wrapper, fetch, request } from "undici";
import { hubFor, only, recordEvents, serve, tlsFixture } from "../../../test/http/kit.ts";
import { PrivateAddressError } from "../../errors.ts";
import { makeWire, type WireOptions } from "./wire.ts";

const { cert, key } = tlsFixture();

interface Listening {
  readonly port: number;
  readonly sockets: readonly Socket[];
}

async function listen(
  t: TestContext,
  server: Server,
  connection: "connection" | "secureConnection",
): Promise<Listening> {
  const sockets: Socket[] = [];
  server.on(connection, (socket: Socket) => {
    sockets.push(socket);
    // A client that disconnects is not an error of the server.
    socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** Answers with the Host header of the request. */
const respondWithHost: RequestListener = ({ headers }, response) => {
  response.end(headers.host);
};

function plainServer(t: TestContext, listener: RequestListener = respondWithHost): Promise<Listening> {
  return listen(t, createServer(listener), "connection");
}

interface SecureOptions {
  /** Chooses a protocol from the client's offer, in the client's order. */
  readonly choose?: (offered: readonly string[]) => string | undefined;
}

/** Answers with the protocol, host and TLS name of the request. */
function secureServer(t: TestContext, { choose }: SecureOptions = {}): Promise<Listening> {
  const options = choose && { ALPNCallback: ({ protocols }: { protocols: string[] }) => choose(protocols) };
  const server = createSecureServer({ cert, key, allowHTTP1: true, ...options }, (asked, response) => {
    response.end(JSON.stringify({ version: asked.httpVersion, host: hostOf(asked), servername: servernameOf(asked) }));
  });
  return listen(t, server, "secureConnection");
}

function hostOf(asked: Http2ServerRequest | IncomingMessage): string | undefined {
  return "authority" in asked && asked.authority ? asked.authority : asked.headers.host;
}

function servernameOf(asked: Http2ServerRequest | IncomingMessage): string | false | null {
  const socket = "stream" in asked ? asked.stream.session?.socket : asked.socket;
  assert.ok(socket instanceof TLSSocket);
  return (socket as TLSSocket & { readonly servername: string | false | null }).servername;
}

function wire(t: TestContext, options: Partial<WireOptions> = {}): Agent {
  const agent = makeWire({ allowPrivate: false, ...options });
  t.after(() => agent.destroy());
  return agent;
}

/** A lookup that returns these addresses for every name, and counts its calls. */
function fakeLookup(...addresses: readonly string[]): LookupFunction & { calls: number } {
  const found: LookupAddress[] = addresses.map(address => ({ address, family: address.includes(":") ? 6 : 4 }));
  const lookup = Object.assign(
    ((_hostname, options, callback) => {
      lookup.calls += 1;
      const [first] = found;
      setImmediate(() => {
        if (options.all || first === undefined) callback(null, found);
        else callback(null, first.address, first.family);
      });
    }) satisfies LookupFunction,
    { calls: 0 },
  );
  return lookup;
}

async function textOf(dispatcher: Dispatcher, url: string): Promise<string> {
  const { body } = await request(url, { dispatcher });
  return await body.text();
}

/** Lets pending callbacks run. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

function refusal(host: string, address: string): (error: unknown) => true {
  return error => {
    assert.ok(error instanceof PrivateAddressError, String(error));
    assert.equal(error.code, "DOCSTOKG_PRIVATE_ADDRESS");
    assert.deepEqual({ host: error.host, address: error.address }, { host, address });
    return true;
  };
}

test("a private address in a URL is connected to when private addresses are allowed", async t => {
  const { port } = await plainServer(t);
  assert.equal(await textOf(wire(t, { allowPrivate: true }), `http://127.0.0.1:${port}/`), `127.0.0.1:${port}`);
});

test("a private address in a URL is refused, without a connection, when they are not", async t => {
  const { port, sockets } = await plainServer(t);
  const agent = wire(t);
  await assert.rejects(request(`http://127.0.0.1:${port}/`, { dispatcher: agent }), refusal("127.0.0.1", "127.0.0.1"));
  // Other spellings of the same address; the URL parser normalises them.
  for (const host of ["127.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1."]) {
    await assert.rejects(request(`http://${host}:${port}/`, { dispatcher: agent }), refusal("127.0.0.1", "127.0.0.1"));
  }
  await assert.rejects(request(`https://[::1]:${port}/`, { dispatcher: agent }), refusal("::1", "::1"));
  await assert.rejects(
    request(`http://[::ffff:127.0.0.1]:${port}/`, { dispatcher: agent }),
    refusal("::ffff:7f00:1", "::ffff:7f00:1"),
  );
  assert.equal(sockets.length, 0);
});

test("a Host header does not get around the check for private addresses", async t => {
  const { port, sockets } = await plainServer(t);
  await assert.rejects(
    request(`http://127.0.0.1:${port}/`, { dispatcher: wire(t), headers: { host: "example.org" } }),
    refusal("127.0.0.1", "127.0.0.1"),
  );
  assert.equal(sockets.length, 0);
});

const privateAnswers: readonly (readonly [what: string, addresses: readonly string[], refused: string])[] = [
  ["a private address", ["127.0.0.1"], "127.0.0.1"],
  ["a public and then a private address", ["8.8.8.8", "127.0.0.1"], "127.0.0.1"],
  ["a private address of IPv6 among public ones", ["8.8.8.8", "2606:4700::1", "fd00::1"], "fd00::1"],
  ["a private address in the clothes of IPv6", ["::ffff:127.0.0.1"], "::ffff:127.0.0.1"],
  ["a link-local address with its zone", ["fe80::1%lo"], "fe80::1%lo"],
  ["something that is not an address", ["nowhere"], "nowhere"],
];

for (const protocol of ["http", "https"]) {
  for (const [what, addresses, refused] of privateAnswers) {
    test(`${protocol} to a name that resolves to ${what} is refused without a connection`, async t => {
      const { port, sockets } = await plainServer(t);
      const lookup = fakeLookup(...addresses);
      await assert.rejects(
        request(`${protocol}://rebound.example:${port}/`, { dispatcher: wire(t, { lookup }) }),
        refusal("rebound.example", refused),
      );
      assert.equal(lookup.calls, 1);
      assert.equal(sockets.length, 0);
    });
  }
}

test("every address of a name is checked, also when only one would be connected to", async t => {
  const before = getDefaultAutoSelectFamily();
  t.after(() => setDefaultAutoSelectFamily(before));
  setDefaultAutoSelectFamily(false);
  const { port, sockets } = await plainServer(t);
  await assert.rejects(
    request(`http://rebound.example:${port}/`, { dispatcher: wire(t, { lookup: fakeLookup("8.8.8.8", "127.0.0.1") }) }),
    refusal("rebound.example", "127.0.0.1"),
  );
  const lookup = fakeLookup("127.0.0.1");
  const allowed = wire(t, { allowPrivate: true, lookup });
  assert.equal(await textOf(allowed, `http://one.example:${port}/`), `one.example:${port}`);
  assert.equal(sockets.length, 1);
});

test("the result of a lookup that returns a single address is checked too", async t => {
  const single: LookupFunction = (_hostname, _options, callback) => callback(null, "10.0.0.7", 4);
  await assert.rejects(
    request("http://internal.example/", { dispatcher: wire(t, { lookup: single }) }),
    refusal("internal.example", "10.0.0.7"),
  );
});

test("an error of the lookup is passed on unchanged", async t => {
  const failure = Object.assign(new Error("getaddrinfo ENOTFOUND nowhere.example"), { code: "ENOTFOUND" });
  const failing: LookupFunction = (_hostname, _options, callback) => callback(failure, []);
  await assert.rejects(
    request("http://nowhere.example/", { dispatcher: wire(t, { lookup: failing }) }),
    error => error === failure,
  );
});

test("localhost is refused by the system's own lookup", async t => {
  const { port, sockets } = await plainServer(t);
  await assert.rejects(request(`http://localhost:${port}/`, { dispatcher: wire(t) }), PrivateAddressError);
  assert.equal(sockets.length, 0);
});

test("fetch rejects with the refusal as its cause", async t => {
  await assert.rejects(
    fetch("http://internal.example/", { dispatcher: wire(t, { lookup: fakeLookup("10.0.0.7") }) }),
    ({ cause }: Error) => refusal("internal.example", "10.0.0.7")(cause),
  );
});

test("a redirect to a private address is refused", async t => {
  const { port, sockets } = await plainServer(t, ({ headers, url }, response) => {
    if (url === "/") response.writeHead(302, { location: `http://127.0.0.1:${port}/secret`, connection: "close" });
    response.end(headers.host);
  });
  const dispatcher = wire(t, { connectTo: [`example.org:80:127.0.0.1:${port}`] });
  await assert.rejects(fetch("http://example.org/", { dispatcher }), ({ cause }: Error) =>
    refusal("127.0.0.1", "127.0.0.1")(cause),
  );
  assert.equal(sockets.length, 1);
});

test("each refused request makes one attempt, and leaves no pool behind", async t => {
  for (const protocol of ["http", "https"]) {
    const lookup = fakeLookup("10.0.0.7");
    const agent = wire(t, { lookup });
    const refused = await Promise.allSettled(
      Array.from({ length: 20 }, () => request(`${protocol}://internal.example/`, { dispatcher: agent })),
    );
    for (const result of refused) {
      assert.ok(result.status === "rejected");
      refusal("internal.example", "10.0.0.7")(result.reason);
    }
    await turns(50);
    assert.equal(lookup.calls, 20);
    assert.deepEqual(agent.stats, {});
  }
});

test("a handler gets a refusal once, after dispatch has returned", async t => {
  const agent = wire(t);
  const callbacks: string[] = [];
  const { promise, resolve } = Promise.withResolvers<Error>();
  agent.dispatch(
    { origin: "http://10.0.0.7", path: "/", method: "GET" },
    {
      onRequestStart: () => callbacks.push("start"),
      onResponseStart: () => callbacks.push("headers"),
      onResponseData: () => callbacks.push("data"),
      onResponseEnd: () => callbacks.push("end"),
      onResponseError: (_controller, error) => {
        callbacks.push("error");
        resolve(error);
      },
    },
  );
  callbacks.push("returned");
  refusal("10.0.0.7", "10.0.0.7")(await promise);
  await turns(20);
  assert.deepEqual(callbacks, ["returned", "error"]);
});

test("a mapped host is connected to the other server under its own name", async t => {
  const { port } = await plainServer(t);
  const lookup = fakeLookup("203.0.113.1");
  const agent = wire(t, { lookup, connectTo: [`example.org:80:127.0.0.1:${port}`] });
  assert.equal(await textOf(agent, "http://example.org/"), "example.org");
  assert.equal(lookup.calls, 0);
});

test("a mapping may lead to a name, which may be private", async t => {
  const { port } = await plainServer(t);
  const agent = wire(t, { lookup: fakeLookup("127.0.0.1"), connectTo: [`example.org:80:staging.example:${port}`] });
  assert.equal(await textOf(agent, "http://example.org/"), "example.org");
});

test("a mapping that changes only the port does not allow a private address", async t => {
  const { port, sockets } = await plainServer(t);
  const agent = wire(t, { lookup: fakeLookup("127.0.0.1"), connectTo: [`:80::${port}`] });
  await assert.rejects(request("http://example.org/", { dispatcher: agent }), refusal("example.org", "127.0.0.1"));
  await assert.rejects(request("http://127.0.0.1/", { dispatcher: agent }), refusal("127.0.0.1", "127.0.0.1"));
  assert.equal(sockets.length, 0);
});

test("an invalid mapping is refused when the agent is created", () => {
  assert.throws(() => makeWire({ allowPrivate: false, connectTo: ["example.org"] }), RangeError);
});

test("a mapped https host keeps its TLS name and uses HTTP/2", async t => {
  const { port, sockets } = await secureServer(t);
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`:443:127.0.0.1:${port}`] });
  for (const host of ["example.org", "api.example.org"]) {
    assert.deepEqual(JSON.parse(await textOf(agent, `https://${host}/`)), { version: "2.0", host, servername: host });
  }
  for (const socket of sockets) assert.equal(socket instanceof TLSSocket && socket.alpnProtocol, "h2");
});

test("HTTP/2 is used when the server leaves the choice to the client", async t => {
  const { port } = await secureServer(t, { choose: ([first]) => first });
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] });
  assert.equal(JSON.parse(await textOf(agent, "https://example.org/")).version, "2.0");
});

test("HTTP/1.1 is used with a server that offers nothing else", async t => {
  const { port } = await secureServer(t, { choose: () => "http/1.1" });
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] });
  assert.deepEqual(JSON.parse(await textOf(agent, "https://example.org/")), {
    version: "1.1",
    host: "example.org",
    servername: "example.org",
  });
});

test("a caller that supports only HTTP/1.1, as Node's own fetch does, gets it", async t => {
  const { port } = await secureServer(t);
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] });
  const dispatcher = new Dispatcher1Wrapper(agent);
  const response = await globalThis.fetch("https://example.org/", { dispatcher } as unknown as RequestInit);
  assert.equal(JSON.parse(await response.text()).version, "1.1");
});

test("fifty requests at once to an HTTP/2 server share one connection", async t => {
  const { port, sockets } = await secureServer(t);
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`example.org:443:127.0.0.1:${port}`] });
  const answers = await Promise.all(Array.from({ length: 50 }, () => textOf(agent, "https://example.org/")));
  for (const answer of answers) assert.equal(JSON.parse(answer).version, "2.0");
  assert.equal(sockets.length, 1);
});

test("a mapped server without a certificate for the requested name is refused", async t => {
  const { port } = await secureServer(t);
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`:443:127.0.0.1:${port}`] });
  for (const host of ["example.net", "192.0.2.2"]) {
    await assert.rejects(request(`https://${host}/`, { dispatcher: agent }), { code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  }
});

test("for a mapped address the certificate must name the requested address, not the connected one", async t => {
  const { port } = await secureServer(t);
  const agent = wire(t, { tls: { ca: cert }, connectTo: [`192.0.2.1:443:127.0.0.1:${port}`] });
  assert.equal(JSON.parse(await textOf(agent, "https://192.0.2.1/")).host, "192.0.2.1");
});

test("a certificate of an unknown authority is refused", async t => {
  const { port } = await secureServer(t);
  const agent = wire(t, { connectTo: [`:443:127.0.0.1:${port}`] });
  await assert.rejects(request("https://example.org/", { dispatcher: agent }), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
});

test("an origin whose connections are closed is forgotten", async t => {
  const { port, sockets } = await plainServer(t, (_asked, response) => {
    response.writeHead(200, { connection: "close" }).end("x");
  });
  const agent = wire(t, { connectTo: [`::127.0.0.1:${port}`] });
  let closed = 0;
  const allClosed = new Promise<void>(resolve => {
    agent.on("disconnect", () => {
      closed += 1;
      if (closed === 100) resolve();
    });
  });
  await Promise.all(Array.from({ length: 100 }, (_, n) => textOf(agent, `http://host-${n}.example/`)));
  assert.equal(sockets.length, 100);
  await allClosed;
  assert.deepEqual(agent.stats, {});
});

test("a time limit may be a fraction of a millisecond", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const network = { headersTimeoutMs: 60_000.5, bodyTimeoutMs: 60_000.5, connectTimeoutMs: 10_000.5 };
  const hub = await hubFor(t, { network });
  assert.equal(await (await hub.request(server.origin)).body.text(), "ok");
});

test("a silent server fails after headersTimeoutMs", async t => {
  const { port } = await plainServer(t, () => undefined);
  const agent = wire(t, { allowPrivate: true, headersTimeoutMs: 50 });
  await assert.rejects(request(`http://127.0.0.1:${port}/`, { dispatcher: agent }), {
    code: "UND_ERR_HEADERS_TIMEOUT",
  });
});

test("a body that stops fails after bodyTimeoutMs", async t => {
  const { port } = await plainServer(t, (_asked, response) => {
    response.write("half");
  });
  const agent = wire(t, { allowPrivate: true, bodyTimeoutMs: 50 });
  await assert.rejects(textOf(agent, `http://127.0.0.1:${port}/`), { code: "UND_ERR_BODY_TIMEOUT" });
});

test("a lookup that never ends fails after connectTimeoutMs", async t => {
  const agent = wire(t, { lookup: () => undefined, connectTimeoutMs: 50 });
  await assert.rejects(request("http://slow.example/", { dispatcher: agent }), { code: "UND_ERR_CONNECT_TIMEOUT" });
});

test("requests to a silent https host time out together, not one after another", async t => {
  const silent = await listen(t, createTcpServer(), "connection");
  const wire = makeWire({ allowPrivate: true, connectTimeoutMs: 500 });
  t.after(() => wire.destroy());
  // Nested in each other, a few hundred of these failures would overflow the stack.
  const ends = Array.from({ length: 1000 }, () =>
    request(`https://127.0.0.1:${silent.port}/`, { dispatcher: wire }).then(
      () => "an answer",
      error => error.code,
    ),
  );
  assert.deepEqual(new Set(await Promise.all(ends)), new Set(["UND_ERR_CONNECT_TIMEOUT"]));
  // One connection attempt for all requests: so they fail together, without measuring time.
  assert.equal(silent.sockets.length, 1);
});

test("allowPrivate: false refuses private addresses at every hop, without a failure of the host", async t => {
  const server = await serve(t, (request, response) => {
    if (request.url === "/start") response.writeHead(302, { location: `http://localhost:${server.port}/end` }).end();
    else response.end("reached");
  });
  const hub = await hubFor(t, {
    network: { allowPrivate: false, connectTo: [`example.org:80:127.0.0.1:${server.port}`] },
  });
  const events = recordEvents(hub);
  await assert.rejects(hub.request(server.origin), PrivateAddressError);
  await assert.rejects(hub.request("http://example.org/start", { maxRedirections: 3 }), PrivateAddressError);
  assert.equal(server.requests.length, 1);
  assert.equal(only(events, "breaker_failure").length, 0);
  assert.equal(only(events, "http_retry").length, 0);
});
