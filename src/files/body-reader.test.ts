import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { BodyReader } from "./body-reader.ts";

async function textOf(reader: BodyReader): Promise<string> {
  let text = "";
  for (let chunk = await reader.next(); chunk !== undefined; chunk = await reader.next()) text += chunk.toString();
  return text;
}

test("the bytes of all chunks are read in their order, and then the end", async () => {
  const reader = new BodyReader(Readable.from(["a", "b", "c"].map(text => Buffer.from(text))));
  assert.equal(await textOf(reader), "abc");
  assert.equal(await reader.next(), undefined);
});

test("chunks that arrive before they are read come as one", async () => {
  const body = new Readable({ read: () => undefined });
  const reader = new BodyReader(body);
  for (const text of ["a", "b", "c"]) body.push(text);
  body.push(null);
  await new Promise(resolve => body.once("end", resolve));
  assert.equal((await reader.next())?.toString(), "abc");
  assert.equal(await reader.next(), undefined);
});

test("a server that sends single bytes is stopped after some thousand of them, until they are read", async () => {
  let given = 0;
  const body = new Readable({
    highWaterMark: 1,
    read() {
      given += 1;
      this.push(given > 20_000 ? null : "x");
    },
  });
  const reader = new BodyReader(body);
  await new Promise<void>(resolve => body.once("pause", resolve));
  assert.ok(given < 10_000, `${given} chunks before the first was read`);
  assert.equal((await textOf(reader)).length, 20_000);
});

test("an error is reported after the last byte", async () => {
  const body = new Readable({ read: () => undefined });
  const reader = new BodyReader(body);
  body.push("a");
  const first = await reader.next();
  body.destroy(new Error("reset"));
  assert.equal(first?.toString(), "a");
  await assert.rejects(reader.next(), { message: "reset" });
});

test("a body that has failed before it is read rejects instead of waiting for ever", async () => {
  for (const cause of [new Error("connection lost"), undefined]) {
    const body = new Readable({ read: () => undefined });
    body.on("error", () => undefined);
    const closed = new Promise(resolve => body.once("close", resolve));
    body.destroy(cause);
    await closed;
    await assert.rejects(new BodyReader(body).next(), cause ?? /closed before it was complete/);
  }
});
