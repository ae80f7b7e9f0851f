import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { StoreLink } from "./store-link.ts";

/** A server that records what it gets and echoes it, and a link to it. */
async function start(t: TestContext) {
  let received = "";
  const onData = Promise.withResolvers<void>();
  const server = createServer(socket => {
    socket.on("error", () => undefined);
    socket.on("data", data => {
      received += String(data);
      onData.resolve();
      socket.write(data);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const link = await StoreLink.to([port]);
  t.after(() => {
    link.close();
    server.close();
  });
  return { link, port: link.routes[port] ?? 0, received: () => received, arrived: onData.promise };
}

async function reply(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  return String((await once(socket, "data"))[0]);
}

test("an open link passes both ways, and with a delay in order", async t => {
  const { link, port } = await start(t);
  const socket = connect(port, "127.0.0.1");
  assert.equal(await reply(socket, "a"), "a");
  let expected = "";
  let text = "";
  socket.on("data", data => {
    text += String(data);
  });
  for (let n = 0; n < 1000; n += 1) {
    link.delay(n < 900 ? 20 : n % 7);
    socket.write(`${n},`);
    expected += `${n},`;
    await setImmediate();
  }
  link.delay(0);
  while (text.length < expected.length) await once(socket, "data");
  assert.equal(text, expected);
  socket.destroy();
});

test("a cut link resets connections and refuses new ones until it is healed", async t => {
  const { link, port } = await start(t);
  const socket = connect(port, "127.0.0.1");
  assert.equal(await reply(socket, "a"), "a");
  const lost = once(socket, "error");
  link.cut();
  await lost;
  const refused = connect(port, "127.0.0.1");
  await once(refused, "error");
  link.heal();
  const again = connect(port, "127.0.0.1");
  assert.equal(await reply(again, "b"), "b");
  again.destroy();
});

test("data sent into a silent link arrives when it is healed", async t => {
  const { link, port, received, arrived } = await start(t);
  link.silence();
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("late");
  assert.equal(received(), "");
  link.heal();
  await arrived;
  assert.equal(received(), "late");
  socket.destroy();
});
