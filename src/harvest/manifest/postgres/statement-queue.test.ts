import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../errors.ts";
import type { Row } from "../manifest-row.ts";
import { StatementQueue } from "./statement-queue.ts";

/** Statements that fail with an error of the server, and with an error that does not say whether they have taken effect. */
const ERRORS: ReadonlyMap<string, Error> = new Map([
  ["bad", Object.assign(new Error("duplicate key"), { code: "23505" })],
  ["unreachable", new StoreError("cannot reach the manifest")],
  ["lost", new Error("Connection terminated unexpectedly")],
]);

/** A queue whose groups end when the test says so. */
function queueWithGroups() {
  const groups: string[][] = [];
  const replies: PromiseWithResolvers<boolean>[] = [];
  const queue = new StatementQueue(async statements => {
    const texts = statements.map(({ text }) => text);
    groups.push(texts);
    const reply = Promise.withResolvers<boolean>();
    replies.push(reply);
    const isReceived = await reply.promise;
    const error = texts.map(text => ERRORS.get(text)).find(each => each !== undefined);
    if (error !== undefined) throw error;
    return isReceived ? texts.map((text): readonly Row[] => [{ text }]) : undefined;
  });
  const run = (text: string, work = 0) => queue.run({ text, values: [], work, untilUs: 0 });
  /** Ends the oldest group that is on its way. */
  const reply = async (isReceived = true) => {
    replies.shift()?.resolve(isReceived);
    await new Promise(setImmediate);
  };
  return { run, groups, reply };
}

test("a statement is sent at once, and those that come meanwhile are sent together after it", async () => {
  const { run, groups, reply } = queueWithGroups();
  const first = run("a");
  const later = [run("b"), run("c")];
  assert.deepEqual(groups, [["a"]]);
  await reply();
  assert.deepEqual(groups, [["a"], ["b", "c"]]);
  await reply();
  assert.deepEqual(await Promise.all([first, ...later]), [[{ text: "a" }], [{ text: "b" }], [{ text: "c" }]]);
  void run("d");
  assert.deepEqual(groups.at(-1), ["d"]);
});

test("a group has at most 32 statements", async () => {
  const { run, groups, reply } = queueWithGroups();
  void run("first");
  for (let index = 0; index < 40; index += 1) void run("other");
  await reply();
  await reply();
  assert.deepEqual(
    groups.map(group => group.length),
    [1, 32, 8],
  );
});

test("a group has its statements in the order of their works, and those of a work in the order of their calls", async () => {
  const { run, groups, reply } = queueWithGroups();
  void run("first", 9);
  const later = [run("b", 7), run("c", 10), run("a", 3), run("b again", 7)];
  await reply();
  assert.deepEqual(groups[1], ["a", "b", "b again", "c"]);
  await reply();
  assert.deepEqual(
    (await Promise.all(later)).map(rows => rows?.[0]?.["text"]),
    ["b", "c", "a", "b again"],
  );
});

test("a statement that fails does not fail the others of its group: each is sent again alone", async () => {
  const { run, groups, reply } = queueWithGroups();
  void run("first");
  const settled = Promise.allSettled([run("a"), run("bad"), run("b")]);
  await reply();
  await reply();
  assert.deepEqual(groups.slice(1), [["a", "bad", "b"], ["a"], ["bad"], ["b"]]);
  for (let index = 0; index < 3; index += 1) await reply();
  assert.deepEqual(
    (await settled).map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
});

for (const name of ["unreachable", "lost"])
  test(`a group that may have taken effect is not sent again (${name})`, async () => {
    const { run, groups, reply } = queueWithGroups();
    void run("first");
    const settled = Promise.allSettled([run("a"), run(name), run("b")]);
    await reply();
    await reply();
    assert.deepEqual(groups.slice(1), [["a", name, "b"]]);
    for (const each of await settled) assert.equal(each.status === "rejected" && each.reason, ERRORS.get(name));
  });

test("each statement of a group learns that its reply was lost", async () => {
  const { run, reply } = queueWithGroups();
  void run("first");
  const lost = Promise.all([run("a"), run("b")]);
  await reply();
  await reply(false);
  assert.deepEqual(await lost, [undefined, undefined]);
});
