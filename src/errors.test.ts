import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BreakerOpenError,
  BusyError,
  ConfigError,
  type Constraint,
  DocstokgError,
  DownloadError,
  isDocstokgError,
  type OpenCircuit,
  PrivateAddressError,
  RateLimitExceeded,
  RejectedError,
  StoreError,
  type WaitBound,
} from "./errors.ts";
import { Gate } from "./gate/gate.ts";
import type { EntryRequest } from "./limiter/entry-request.ts";
import { limitPoliciesFrom } from "./policy/limits.ts";
import { FakeTime } from "./testing/fake-time.ts";

const details = {
  host: "api.crossref.org",
  role: "metadata",
  constraint: { kind: "window", owner: "api.crossref.org", limit: "10/SECOND" },
} as const;

test("a rate limit refusal names the limit, the wait and the option that bounds it", () => {
  const message = (constraint: Constraint, maxWaitOption?: WaitBound["maxWaitOption"]) =>
    new RateLimitExceeded({ ...details, constraint, retryAfterMs: 340, maxWaitMs: 200.9, maxWaitOption }).message;
  const { constraint } = details;
  assert.equal(
    message(constraint, "max_delay_ms"),
    "rate limit 10/SECOND of api.crossref.org (metadata) reached: next slot in 340 ms, " +
      "but this call waits at most 200 ms (max_delay_ms; pass maxWaitMs to wait longer)",
  );
  assert.equal(
    message({ ...constraint, owner: "service arxiv" }),
    "rate limit 10/SECOND of service arxiv (call to api.crossref.org, metadata) reached: next slot in 340 ms, " +
      "but this call waits at most 200 ms (maxWaitMs)",
  );
  assert.equal(
    message({ ...constraint, kind: "spacing", limit: "even spacing of 6/SECOND" }, "deadlineMs"),
    "even spacing of 6/SECOND for api.crossref.org (metadata): next slot in 340 ms, " +
      "but this call waits at most 200 ms (the time left of deadlineMs)",
  );
  assert.equal(
    message({ ...constraint, kind: "cooldown", limit: "cooldown" }, "maxWaitMs"),
    "api.crossref.org (metadata) is in cooldown for another 340 ms, but this call waits at most 200 ms (maxWaitMs)",
  );
});

test("a breaker refusal names the reason and the time until the next call", () => {
  const message = (circuit: Partial<OpenCircuit>, owner: string = details.host) =>
    new BreakerOpenError({
      ...details,
      constraint: { kind: "breaker", owner, limit: "open circuit" },
      reason: "failures",
      cooldownRemainingMs: 44_200,
      ...circuit,
    }).message;
  assert.equal(
    message({ failMax: 5 }),
    "circuit open for api.crossref.org (metadata): 5 consecutive failures, next trial in 45 s",
  );
  assert.equal(
    message({ failMax: 5, lastFailure: "ECONNREFUSED" }),
    "circuit open for api.crossref.org (metadata): 5 consecutive failures (the last: ECONNREFUSED), next trial in 45 s",
  );
  assert.equal(message({ failMax: 1 }), "circuit open for api.crossref.org (metadata): 1 failure, next trial in 45 s");
  assert.equal(
    message({}, "resolver crossref"),
    "circuit open for resolver crossref (call to api.crossref.org, metadata): " +
      "too many consecutive failures, next trial in 45 s",
  );
  assert.equal(
    message({ isTrialRunning: true }),
    "circuit half-open for api.crossref.org (metadata): all trial calls are in flight, next one in about 45 s",
  );
  assert.equal(
    message({ isTrialRunning: true, reason: "retry-after" }),
    "api.crossref.org (metadata) resumes after a cooldown: all trial calls are in flight, next call in about 45 s",
  );
  assert.equal(
    message({ reason: "retry-after" }),
    "api.crossref.org (metadata) is in cooldown: the server sent Retry-After, next call in 45 s",
  );
  assert.equal(
    message({ reason: "rolling-window" }),
    "api.crossref.org (metadata) is in cooldown: too many failures within the rolling window, next call in 45 s",
  );
  assert.equal(
    message({ reason: "cli-open:maintenance: until noon" }),
    "circuit forced open for api.crossref.org by an operator (maintenance: until noon): " +
      'next call in 45 s, or after "docstokg breaker close api.crossref.org"',
  );
});

test("a busy error names the concurrency limit and the option that bounds the wait", () => {
  const constraint = { kind: "concurrency", owner: "api.crossref.org", limit: "max_concurrent 3" } as const;
  assert.equal(
    new BusyError({ ...details, constraint, maxWaitMs: 0 }).message,
    "no free slot for api.crossref.org (metadata): max_concurrent 3 of api.crossref.org reached, " +
      "but this call waits at most 0 ms (maxWaitMs)",
  );
  const global = { kind: "concurrency", owner: "global", limit: "max_inflight 500" } as const;
  assert.match(
    new BusyError({ ...details, constraint: global, maxWaitMs: 0 }).message,
    /: max_inflight 500 of the process reached, /,
  );
});

test("every refusal is a RejectedError that is not retryable", () => {
  const refusals = [
    new RateLimitExceeded({ ...details, retryAfterMs: 340, maxWaitMs: 200 }),
    new BreakerOpenError({ ...details, reason: "retry-after", cooldownRemainingMs: 4000 }),
    new BusyError({ ...details, maxWaitMs: 0 }),
  ];
  for (const error of refusals) {
    assert.ok(error instanceof RejectedError);
    assert.equal(error.retryable, false);
    assert.equal(error.host, "api.crossref.org");
    assert.equal(error.role, "metadata");
    assert.deepEqual(error.constraint, details.constraint);
  }
  assert.deepEqual(
    refusals.map(error => error.retryAfterMs),
    [340, 4000, undefined],
  );
});

test("name and code are literals, so that bundling does not change them", () => {
  const errors = [
    new RateLimitExceeded({ ...details, retryAfterMs: 1, maxWaitMs: 0 }),
    new BreakerOpenError({ ...details, reason: "failures", cooldownRemainingMs: 1 }),
    new BusyError({ ...details, maxWaitMs: 0 }),
    new ConfigError([]),
    new StoreError("away"),
    new DownloadError("cut short"),
    new PrivateAddressError({ host: "localhost", address: "::1" }),
  ];
  assert.deepEqual(
    errors.map(({ name, code }) => `${name} ${code}`),
    [
      "RateLimitExceeded DOCSTOKG_RATE_LIMITED",
      "BreakerOpenError DOCSTOKG_BREAKER_OPEN",
      "BusyError DOCSTOKG_BUSY",
      "ConfigError DOCSTOKG_CONFIG",
      "StoreError DOCSTOKG_STORE",
      "DownloadError DOCSTOKG_DOWNLOAD",
      "PrivateAddressError DOCSTOKG_PRIVATE_ADDRESS",
    ],
  );
});

test("isDocstokgError recognises an error of another copy of the package", () => {
  const foreign = Object.assign(new Error("from another copy"), { [Symbol.for("docstokg.error")]: true });
  assert.equal(foreign instanceof DocstokgError, false);
  assert.equal(isDocstokgError(foreign), true);
  assert.equal(isDocstokgError(new BusyError({ ...details, maxWaitMs: 0 })), true);
  assert.equal(isDocstokgError(new Error("not ours")), false);
  assert.equal(isDocstokgError(null), false);
  assert.equal(isDocstokgError("docstokg"), false);
});

test("a configuration error lists every problem with its source and key", () => {
  const error = new ConfigError([
    { where: "limits.yaml:3", path: "hosts.a.example.metadata.rates", message: '"8" is not a rate' },
    { where: "DOCSTOKG_AIMD", path: "", message: "expected enabled:true" },
  ]);
  assert.equal(
    error.message,
    'limits.yaml:3: hosts.a.example.metadata.rates: "8" is not a rate\nDOCSTOKG_AIMD: expected enabled:true',
  );
  assert.equal(error.problems.length, 2);
});

test("the cause of a store error is kept", () => {
  const cause = new Error("SQLITE_BUSY");
  assert.equal(new StoreError("the store is locked", { cause }).cause, cause);
});

test("a private address error names the host, the address and the options that allow it", () => {
  const error = new PrivateAddressError({ host: "internal.example", address: "10.0.0.7" });
  assert.equal(error.host, "internal.example");
  assert.equal(error.address, "10.0.0.7");
  assert.equal(
    error.message,
    "internal.example resolves to 10.0.0.7, a private address; " +
      "allow it with network.allowPrivate (--allow-private), or map the host with network.connectTo (--connect-to)",
  );
});

test("a private address error for an address in the URL does not mention name resolution", () => {
  assert.equal(
    new PrivateAddressError({ host: "10.0.0.7", address: "10.0.0.7" }).message,
    "10.0.0.7 is a private address; allow it with network.allowPrivate (--allow-private), or map the host with network.connectTo (--connect-to)",
  );
});

test("a refusal names the option that bounded the wait", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 200 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time);
  const messageOf = async (request: Partial<EntryRequest>) => {
    const enter = async () => gate.enter({ host: "api.example.org", role: "metadata", stamp: "granted", ...request });
    return enter().then(
      () => "granted",
      error => error.message,
    );
  };
  assert.equal(await messageOf({}), "granted");
  const reached = "rate limit 1/SECOND of api.example.org (metadata) reached: next slot in 1.0 s, but this call waits";
  assert.equal(await messageOf({}), `${reached} at most 200 ms (max_delay_ms; pass maxWaitMs to wait longer)`);
  assert.equal(await messageOf({ maxWaitMs: 300 }), `${reached} at most 300 ms (maxWaitMs)`);
  assert.equal(
    await messageOf({ maxWaitMs: 400, maxWaitOption: "deadlineMs" }),
    `${reached} at most 400 ms (the time left of deadlineMs)`,
  );
});

test("a call whose bound ends while it waits for a slot gets an error that names the bound", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "100/SECOND", max_concurrent: 1 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time);
  const request = { host: "api.example.org", role: "metadata" } as const;
  await gate.enter(request);
  const refused = assert.rejects(async () => gate.enter({ ...request, maxWaitMs: 300 }), {
    name: "BusyError",
    message:
      "no free slot for api.example.org (metadata): max_concurrent 1 of api.example.org reached, " +
      "but this call has waited 300 ms of at most 300 ms (maxWaitMs)",
  });
  await time.advance(500);
  await refused;
});
