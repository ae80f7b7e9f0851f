import assert from "node:assert/strict";
import { test } from "node:test";
import { wrapGlobalFetch } from "./global-fetch.ts";

for (const order of ["the first one first", "the last one first"]) {
  test(`wrappers of the global fetch are removed, ${order}, and the previous one is restored`, async t => {
    const original = globalThis.fetch;
    t.after(() => {
      globalThis.fetch = original;
    });
    const native = async () => new Response("native");
    globalThis.fetch = native;
    const seen: string[] = [];
    const wrap = (name: string) =>
      wrapGlobalFetch(call => {
        seen.push(name);
        return call();
      });
    const removes = [wrap("one"), wrap("two")];
    await fetch("https://example.org");
    assert.deepEqual(seen, ["two", "one"]);
    if (order === "the last one first") removes.reverse();
    removes[0]?.();
    await fetch("https://example.org");
    assert.equal(seen.at(-1), order === "the last one first" ? "one" : "two");
    assert.equal(seen.length, 3);
    for (const remove of [...removes, ...removes]) remove();
    assert.equal(globalThis.fetch, native);
  });
}

test("a fetch that was set by other means stays, and the removed wrapper below it passes calls on", async t => {
  const original = globalThis.fetch;
  t.after(() => {
    globalThis.fetch = original;
  });
  globalThis.fetch = async () => new Response("native");
  let calls = 0;
  const remove = wrapGlobalFetch(call => {
    calls += 1;
    return call();
  });
  const below = globalThis.fetch;
  const foreign: typeof fetch = (...args) => below(...args);
  globalThis.fetch = foreign;
  remove();
  assert.equal(globalThis.fetch, foreign);
  assert.equal(await (await fetch("https://example.org")).text(), "native");
  assert.equal(calls, 0);
});
