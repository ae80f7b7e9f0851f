import assert from "node:assert/strict";
import { test } from "node:test";
import { ServersThread } from "./servers-thread.ts";
import { startInternet } from "./start-internet.ts";

test("after close every call is rejected, and close may be called again", async () => {
  const internet = await startInternet({ works: 0 });
  await Promise.all([internet.close(), internet.close()]);
  await assert.rejects(internet.ledger(), /the simulated internet is closed/);
});

test("when the thread fails, open calls are rejected with the cause", async () => {
  const options = { seed: 1, works: 0, bigOntologyBytes: 10_000, script: [] };
  const code = `import { parentPort } from "node:worker_threads";
    parentPort.postMessage({});
    parentPort.on("message", () => { throw new Error("a fault"); });`;
  const thread = new ServersThread(options, new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  await thread.ready;
  const hasCause = (error: Error) =>
    /thread of the simulated internet has failed/.test(error.message) && /a fault/.test(String(error.cause));
  await assert.rejects(thread.send({ kind: "ledger" }), hasCause);
  await assert.rejects(thread.send({ kind: "ledger" }), hasCause);
  await thread.close();
});
