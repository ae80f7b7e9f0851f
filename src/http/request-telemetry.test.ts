import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { dispatchTo, RecordingHandler } from "../../test/http/handlers.ts";
import { heldServer, hubFor, ONE_A_SECOND_QUEUED, only, recordEvents, until } from "../../test/http/kit.ts";
import { FakeTime } from "../testing/fake-time.ts";

test("the http_request event has the time in the queue and the total time", async t => {
  const time = new FakeTime();
  const { held, server, hub, arrived } = await heldServer(t, { time, cache: false, limits: ONE_A_SECOND_QUEUED });
  const events = recordEvents(hub);
  const first = hub.request(server.origin);
  await arrived(1);
  held[0]?.end();
  await (await first).body.text();
  const second = hub.request(server.origin);
  await time.advance(1000);
  await arrived(2);
  await time.advance(250);
  held[1]?.end();
  await (await second).body.text();
  assert.deepEqual(
    only(events, "http_request").map(({ rate_delay_ms, elapsed_ms, error }) => ({ rate_delay_ms, elapsed_ms, error })),
    [
      { rate_delay_ms: 0, elapsed_ms: 0, error: undefined },
      { rate_delay_ms: 1000, elapsed_ms: 1250, error: undefined },
    ],
  );
});

test("the error field of http_request is the code, the name or the type of the error", async t => {
  const { server, hub, arrived } = await heldServer(t, { cache: false });
  const events = recordEvents(hub);
  const reasons = [Object.assign(new Error("x"), { code: "E_ENOUGH" }), new TypeError("x"), { why: "x" }, "x", null];
  for (const [index, reason] of reasons.entries()) {
    const { controller } = dispatchTo(hub, server.origin, new RecordingHandler());
    await arrived(index + 1);
    controller.abort(reason as Error);
  }
  assert.deepEqual(
    only(events, "http_request").map(({ error }) => error),
    ["E_ENOUGH", "TypeError", "Error", "string", "UND_ERR_ABORTED"],
  );
});

test("a problem with the cache becomes a process warning when there is no listener", async t => {
  const warnings: string[] = [];
  const listener = ({ name, message }: Error) => {
    if (name === "DocstokgWarning") warnings.push(message);
  };
  process.on("warning", listener);
  t.after(() => process.off("warning", listener));
  const file = join(import.meta.filename, "not-a-folder.db");
  const hub = await hubFor(t, { cache: `sqlite:${file}` });
  await until(() => warnings.length > 0);
  await hub.close();
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /not-a-folder\.db/);
});
