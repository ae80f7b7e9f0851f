import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startStrictServer } from "./strict-server.ts";

test("a strict server admits requests within every window and rejects the others", async t => {
  const server = await startStrictServer({ rate: "5/DAY+3/HOUR" });
  t.after(() => server.close());
  const statuses: number[] = [];
  for (let call = 0; call < 4; call += 1) statuses.push((await fetch(`${server.origin}/${call}`)).status);
  assert.deepEqual(statuses, [200, 200, 200, 429]);
  assert.equal(server.rejected, 1);
  assert.equal(server.arrivalsMs.length, 4);
  assert.equal(server.busiest, 4);
});

test("a strict server calls the answer option, or sends the path", async t => {
  const server = await startStrictServer({ rate: "1/SECOND" });
  const other = await startStrictServer({ rate: "1/SECOND", answer: (_, response) => response.end("hello") });
  t.after(() => Promise.all([server.close(), other.close()]));
  assert.equal(await (await fetch(`${server.origin}/a?b`)).text(), "/a?b\n");
  assert.equal(await (await fetch(other.origin)).text(), "hello");
});

test("a request that arrives while the process is blocked counts from its arrival", async t => {
  const server = await startStrictServer({ rate: "1/SECOND" });
  t.after(() => server.close());
  const { hostname, port } = new URL(server.origin);
  const socket = connect(Number(port), hostname);
  t.after(() => socket.destroy());
  await once(socket, "connect");
  const send = async () => {
    socket.write("GET / HTTP/1.1\r\nhost: test\r\n\r\n");
    const writtenMs = performance.now();
    const answer = once(socket, "data");
    // Nothing runs in this process meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, server.arrivalsMs.length === 0 ? 200 : 0);
    return { writtenMs, status: String((await answer)[0]).slice(9, 12) };
  };
  const first = await send();
  await sleep(1002 - (performance.now() - first.writtenMs));
  const second = await send();
  assert.deepEqual([first.status, second.status], ["200", "200"]);
});
