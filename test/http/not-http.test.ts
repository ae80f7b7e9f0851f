import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { hubFor, only, recordEvents } from "./kit.ts";

/** A server on loopback that answers each request with the same bytes, whatever they are. */
async function byteServer(t: TestContext, answer: (socket: Socket) => void) {
  const seen = { origin: "", requests: 0 };
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", () => {
      seen.requests += 1;
      answer(socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  seen.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return seen;
}

const FAULTS: Readonly<Record<string, string>> = {
  "an SSH banner": "SSH-2.0-OpenSSH_9.6\r\n",
  "HTML without a head": "<!doctype html><html><body>Bad Gateway</body></html>\r\n\r\n",
  "a status line that is not a number": "HTTP/1.1 abc OK\r\n\r\n",
  "the status 000": "HTTP/1.1 000 OK\r\ncontent-length: 0\r\n\r\n",
  "a header without a colon": "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
  "a head that is too large": `HTTP/1.1 200 OK\r\n${`x-filler: ${"y".repeat(1000)}\r\n`.repeat(40)}\r\n`,
  "a broken chunk": "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot-a-size\r\nhello\r\n0\r\n\r\n",
  "two lengths that differ": "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
  "a TLS alert": "\x15\x03\x01\x00\x02\x02\x28",
};

for (const [fault, bytes] of Object.entries(FAULTS)) {
  test(`${fault} is a failure: it is retried and opens the circuit`, async t => {
    const server = await byteServer(t, socket => socket.end(bytes, "latin1"));
    const hub = await hubFor(t, {
      retry: { attempts: 2, baseMs: 0 },
      breakers: {
        defaults: { roles: { metadata: { fail_max: 3 } } },
        advanced: { rolling_window: { enabled: false } },
      },
    });
    const events = recordEvents(hub);
    const read = async () => (await hub.fetch(server.origin)).text();
    await assert.rejects(read());
    // A fault in the body ends the call: the head was delivered already.
    const isInBody = fault === "a broken chunk";
    assert.equal(server.requests, isInBody ? 1 : 2);
    for (let call = 0; call < 3; call += 1) await assert.rejects(read());
    assert.equal(server.requests, 3);
    const attempts = only(events, "http_attempt");
    assert.deepEqual(
      attempts.map(({ outcome }) => outcome),
      ["failed", "failed", "failed"],
    );
    assert.equal(hub.snapshot().inFlight, 0);
  });
}
