import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { type Connector, sharingTimeouts } from "./sharing-timeouts.ts";

type Callback = Parameters<Connector>[1];

const DIAL = { hostname: "a.example", protocol: "https:", port: "443" };
const TIMEOUT = Object.assign(new Error("silent"), { code: "UND_ERR_CONNECT_TIMEOUT" });

/** The connections that were started, and a connector that opens them. */
function startedConnections() {
  const started: Callback[] = [];
  const connect = sharingTimeouts((_, callback) => {
    started.push(callback);
  });
  return { started, connect };
}

test("connections that are started while a timeout is reported fail one after the other, none inside another", () => {
  const { started, connect } = startedConnections();
  let depth = 0;
  let deepest = 0;
  let failed = 0;
  const open = () =>
    connect(DIAL, (...[error]) => {
      assert.equal(error, TIMEOUT);
      depth += 1;
      deepest = Math.max(deepest, depth);
      failed += 1;
      if (failed < 10_000) open();
      depth -= 1;
    });
  open();
  started[0]?.(TIMEOUT, null);
  assert.deepEqual({ failed, deepest, connections: started.length }, { failed: 10_000, deepest: 1, connections: 1 });
  open();
  assert.equal(started.length, 2, "a connection that is started later is opened");
});

test("another origin, and another error, are not shared", () => {
  const { started, connect } = startedConnections();
  const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  connect(DIAL, () => connect({ ...DIAL, hostname: "b.example" }, () => undefined));
  connect(DIAL, () => connect(DIAL, () => undefined));
  started[0]?.(TIMEOUT, null);
  started[1]?.(refused, null);
  assert.equal(started.length, 4);
});

test("each connection fails in the asynchronous context of its own request", () => {
  const { started, connect } = startedConnections();
  const request = new AsyncLocalStorage<string>();
  const contexts: (string | undefined)[] = [];
  const open = (then: () => void) =>
    connect(DIAL, () => {
      contexts.push(request.getStore());
      then();
    });
  open(() => request.run("second", () => open(() => request.run("third", () => open(() => undefined)))));
  request.run("first", () => started[0]?.(TIMEOUT, null));
  assert.deepEqual(contexts, ["first", "second", "third"]);
});

test("if the report to one connection throws, the others are reported all the same", () => {
  const { started, connect } = startedConnections();
  const failed: string[] = [];
  connect(DIAL, () => {
    connect(DIAL, () => failed.push("second"));
    throw new Error("thrown");
  });
  assert.throws(() => started[0]?.(TIMEOUT, null), /thrown/);
  assert.deepEqual(failed, ["second"]);
  connect(DIAL, () => undefined);
  assert.equal(started.length, 2);
});
