import assert from "node:assert/strict";
import { test } from "node:test";
import { hubFor, serve } from "../../test/http/kit.ts";
import { createHub } from "./create-hub.ts";

test("invalid values of maxRedirections and deadlineMs are errors, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end());
  const hub = await hubFor(t);
  for (const maxRedirections of [-1, 1.5, Number.NaN]) {
    await assert.rejects(hub.request(server.origin, { maxRedirections }), /maxRedirections must be a whole number/);
  }
  await assert.rejects(hub.request(server.origin, { deadlineMs: Number.NaN }), /deadlineMs must be a number above 0/);
  assert.equal(server.requests.length, 0);
});

test("a call with invalid options is an error, and nothing is sent", async t => {
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t);
  await assert.rejects(hub.request(server.origin, { deadlineMs: 0 }), /deadlineMs must be a number above 0/);
  await assert.rejects(
    hub.request(server.origin, { maxWaitMs: -1 }),
    /maxWaitMs must be a number of at least 0, not -1/,
  );
  await assert.rejects(
    hub.request(server.origin, { weight: 1.5 }),
    /weight must be an integer of at least 1, not 1\.5/,
  );
  await assert.rejects(
    hub.request(server.origin, { role: "nobody" as never }),
    /role must be one of metadata, landing, artifact, not "nobody"/,
  );
  await assert.rejects(hub.fetch("ftp://example.org/"));
  assert.equal(server.requests.length, 0);
  assert.equal(hub.snapshot().calls, 0);
  await assert.rejects(
    createHub({ env: {}, retry: { attempts: 0 } }),
    /retry.attempts must be a whole number of at least 1/,
  );
  await assert.rejects(createHub({ env: {}, cache: "disk" as never }), /cache must be/);
});
