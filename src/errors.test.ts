import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BreakerOpenError,
  BusyError,
  ConfigError,
  DocstokgError,
  DownloadError,
  isDocstokgError,
  PrivateAddressError,
  RateLimitExceeded,
  RejectedError,
  StoreError,
} from "./errors.ts";

const details = {
  host: "api.crossref.org",
  role: "metadata",
  constraint: { kind: "window", owner: "api.crossref.org", limit: "10/SECOND" },
} as const;

test("a refusal says who, what and how long", () => {
  const error = new RateLimitExceeded({ ...details, retryAfterMs: 340, maxWaitMs: 200 });
  assert.equal(
    error.message,
    "api.crossref.org (metadata) is full for another 340 ms: 10/SECOND of api.crossref.org; this call may wait 200 ms",
  );
});

test("every refusal is a RejectedError that no retry layer may repeat", () => {
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

test("name and code are literals, so that they survive a bundler", () => {
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

test("the guard knows an error of a second copy of the package", () => {
  const foreign = Object.assign(new Error("from another copy"), { [Symbol.for("docstokg.error")]: true });
  assert.equal(foreign instanceof DocstokgError, false);
  assert.equal(isDocstokgError(foreign), true);
  assert.equal(isDocstokgError(new BusyError({ ...details, maxWaitMs: 0 })), true);
  assert.equal(isDocstokgError(new Error("not ours")), false);
  assert.equal(isDocstokgError(null), false);
  assert.equal(isDocstokgError("docstokg"), false);
});

test("a configuration error lists every problem with its place", () => {
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

test("a private address is named with its host and with what would allow it", () => {
  const error = new PrivateAddressError({ host: "internal.example", address: "10.0.0.7" });
  assert.equal(error.host, "internal.example");
  assert.equal(error.address, "10.0.0.7");
  assert.equal(
    error.message,
    "internal.example resolves to 10.0.0.7, a private address; " +
      "allow it with network.allowPrivate, or map it with connectTo",
  );
});

test("an address that was asked for by itself is not said to resolve", () => {
  assert.equal(
    new PrivateAddressError({ host: "10.0.0.7", address: "10.0.0.7" }).message,
    "10.0.0.7 is a private address; allow it with network.allowPrivate, or map it with connectTo",
  );
});
