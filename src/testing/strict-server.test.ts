import assert from "node:assert/strict";
import { test } from "node:test";
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
