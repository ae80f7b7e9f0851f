import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { defaultClassifyRules, faultText, outcomeOfError, outcomeOfResponse } from "./classify.ts";

const success = { kind: "success" };
const neutral = { kind: "neutral" };
const failed = { kind: "failure", cause: "status", throttled: false };
const throttled = { kind: "failure", cause: "status", throttled: true };
const interrupted = { kind: "failure", cause: "network", throttled: false };
const unreached = { ...interrupted, unreached: true };

const FAILURES = [408, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530];

for (const status of FAILURES.filter(status => status !== 429)) {
  test(`${status} is a failure`, () => assert.deepEqual(outcomeOfResponse({ status }), failed));
}

for (const status of [200, 201, 202, 204, 206, 299, 301, 302, 304, 308, 399]) {
  test(`${status} is a success`, () => assert.deepEqual(outcomeOfResponse({ status }), success));
}

for (const status of [400, 401, 403, 404, 405, 410, 418, 451, 501, 505, 599, 100, 103, 199, 600, 0, -1, Number.NaN]) {
  test(`${status} is neutral`, () => assert.deepEqual(outcomeOfResponse({ status }), neutral));
}

test("a 429 is always a throttle", () => {
  assert.deepEqual(outcomeOfResponse({ status: 429 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 429, retryAfterMs: 1000, remaining: 5 }), throttled);
});

test("a 503, 509 or 529 with Retry-After is a throttle", () => {
  assert.deepEqual(outcomeOfResponse({ status: 503, retryAfterMs: 1000 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 503, retryAfterMs: undefined, remaining: 0 }), failed);
  assert.deepEqual(outcomeOfResponse({ status: 509, retryAfterMs: 1000 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 529, retryAfterMs: 1000 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 503, retryAfterMs: 0 }), failed);
});

test("a 403 with Retry-After or with no remaining quota is a throttle", () => {
  assert.deepEqual(outcomeOfResponse({ status: 403, retryAfterMs: 1000 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 403, remaining: 0 }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 403, remaining: 1 }), neutral);
});

test("neither a Retry-After nor an empty quota makes another status a failure", () => {
  for (const status of [401, 404, 451]) {
    assert.deepEqual(outcomeOfResponse({ status, retryAfterMs: 59_000, remaining: 0 }), neutral);
  }
  assert.deepEqual(outcomeOfResponse({ status: 200, retryAfterMs: 59_000, remaining: 0 }), success);
  assert.deepEqual(outcomeOfResponse({ status: 500, retryAfterMs: 4000 }), failed);
});

test("an error status replayed by an archive is neutral", () => {
  for (const status of [403, 404, 429, 503]) {
    assert.deepEqual(outcomeOfResponse({ status, isMemento: true, retryAfterMs: 1000, remaining: 0 }), neutral);
  }
});

test("a good status replayed by an archive is a success, so that its circuit can close", () => {
  for (const status of [200, 302]) assert.deepEqual(outcomeOfResponse({ status, isMemento: true }), success);
});

test("without memento-datetime the status counts for the host", () => {
  assert.deepEqual(outcomeOfResponse({ status: 429, isMemento: false }), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 200, isMemento: false }), success);
});

test("a configured failure status is a failure, also a 2xx", () => {
  const rules = { failureStatuses: new Set([202, 404, 429]), neutralStatuses: new Set<number>() };
  assert.deepEqual(outcomeOfResponse({ status: 202 }, rules), failed);
  assert.deepEqual(outcomeOfResponse({ status: 404 }, rules), failed);
  assert.deepEqual(outcomeOfResponse({ status: 429 }, rules), throttled);
  assert.deepEqual(outcomeOfResponse({ status: 503, retryAfterMs: 1000 }, rules), neutral);
});

test("the neutral list wins over the failure list and over success", () => {
  const rules = { ...defaultClassifyRules, neutralStatuses: new Set([202, 429, 503]) };
  assert.deepEqual(outcomeOfResponse({ status: 202 }, rules), neutral);
  assert.deepEqual(outcomeOfResponse({ status: 429 }, rules), neutral);
  assert.deepEqual(outcomeOfResponse({ status: 503, retryAfterMs: 1000 }, rules), neutral);
  assert.deepEqual(outcomeOfResponse({ status: 500 }, rules), failed);
});

test("equal responses and errors get the same frozen outcome object", () => {
  for (const status of [200, 404, 429, 500]) {
    assert.equal(outcomeOfResponse({ status }), outcomeOfResponse({ status }));
    assert.ok(Object.isFrozen(outcomeOfResponse({ status })));
  }
  assert.equal(outcomeOfError(coded("ECONNRESET")), outcomeOfError(coded("EPIPE")));
  assert.equal(outcomeOfError(coded("ECONNREFUSED")), outcomeOfError(coded("ENOTFOUND")));
  assert.ok(Object.isFrozen(outcomeOfError(coded("ECONNRESET"))));
});

/** DNS, connect and TLS: the request was not sent. */
const unreachedCodes = [
  ..."ECONNREFUSED EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN EPROTO".split(" "),
  ..."ENOTFOUND EAI_AGAIN EAI_FAIL UND_ERR_CONNECT_TIMEOUT".split(" "),
  ..."UND_ERR_PRX_CONN UND_ERR_SOCKS5_REPLY_1 UND_ERR_SOCKS5_REPLY_3 UND_ERR_SOCKS5_REPLY_4".split(" "),
  ..."UND_ERR_SOCKS5_REPLY_5 UND_ERR_SOCKS5_REPLY_6".split(" "),
  ..."ERR_TLS_CERT_ALTNAME_INVALID ERR_TLS_HANDSHAKE_TIMEOUT ERR_SSL_WRONG_VERSION_NUMBER".split(" "),
  ..."CERT_HAS_EXPIRED CERT_NOT_YET_VALID DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN".split(" "),
  ..."UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_ISSUER_CERT_LOCALLY HOSTNAME_MISMATCH CRL_HAS_EXPIRED".split(" "),
];

const interruptedCodes = [
  ..."ECONNRESET ECONNABORTED EPIPE ETIMEDOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET".split(" "),
  ..."UND_ERR_RES_CONTENT_LENGTH_MISMATCH UND_ERR_INFO".split(" "),
  ..."HPE_INVALID_CONSTANT HPE_INVALID_EOF_STATE".split(" "),
  ..."ERR_HTTP2_STREAM_ERROR ERR_HTTP2_STREAM_CANCEL ERR_HTTP2_SESSION_ERROR ERR_HTTP2_GOAWAY_SESSION".split(" "),
  ..."ERR_HTTP2_ERROR ERR_HTTP2_INVALID_SESSION ERR_HTTP2_PING_CANCEL".split(" "),
];

for (const code of [...unreachedCodes, ...interruptedCodes]) {
  test(`${code} is a network failure, bare or inside what fetch throws`, () => {
    const outcome = unreachedCodes.includes(code) ? unreached : interrupted;
    assert.deepEqual(outcomeOfError(coded(code)), outcome);
    assert.deepEqual(outcomeOfError(new TypeError("fetch failed", { cause: coded(code) })), outcome);
  });
}

test("a proxy that cannot open a tunnel is a network failure, and one that does not permit it is not", () => {
  const tunnelError = (statusCode: number | undefined) =>
    outcomeOfError(Object.assign(coded("ERR_PROXY_TUNNEL"), { statusCode }));
  for (const statusCode of [502, 503, 504, Number.NaN, undefined])
    assert.deepEqual(tunnelError(statusCode), unreached, String(statusCode));
  for (const statusCode of [301, 400, 403, 407]) assert.deepEqual(tunnelError(statusCode), neutral, String(statusCode));
});

const neutralCodes = [
  ..."UND_ERR_ABORTED ABORT_ERR UND_ERR_INVALID_ARG UND_ERR_DESTROYED UND_ERR_CLOSED UND_ERR_NOT_SUPPORTED".split(" "),
  ..."UND_ERR_SOCKS5_REPLY_2 UND_ERR_SOCKS5_AUTH_REJECTED UND_ERR_SOCKS5_VERSION".split(" "),
  ..."UND_ERR_REQ_CONTENT_LENGTH_MISMATCH ERR_HTTP2_INVALID_HEADER_VALUE ERR_INVALID_URL EMFILE EADDRNOTAVAIL".split(
    " ",
  ),
  ..."DOCSTOKG_RATE_LIMITED DOCSTOKG_BREAKER_OPEN DOCSTOKG_BUSY DOCSTOKG_STORE NOT_CERT_ERR".split(" "),
];

for (const code of neutralCodes) {
  test(`${code} is neutral`, () => assert.deepEqual(outcomeOfError(coded(code)), neutral));
}

test("an abort and a timeout of the caller are neutral", () => {
  const controller = new AbortController();
  controller.abort();
  assert.deepEqual(outcomeOfError(controller.signal.reason), neutral);
  assert.deepEqual(outcomeOfError(new DOMException("too late", "TimeoutError")), neutral);
  assert.deepEqual(outcomeOfError(Object.assign(new Error("aborted"), { name: "AbortError" })), neutral);
});

test("a connection that timed out never reached the host, a timeout of a response did", () => {
  assert.deepEqual(outcomeOfError(Object.assign(coded("ETIMEDOUT"), { syscall: "connect" })), unreached);
  assert.deepEqual(outcomeOfError(Object.assign(coded("ETIMEDOUT"), { syscall: "read" })), interrupted);
});

test("a timeout with a network code is a network failure", () => {
  assert.deepEqual(outcomeOfError(Object.assign(coded("ETIMEDOUT"), { name: "TimeoutError" })), interrupted);
});

test("an abort anywhere in the chain of causes wins over a network code", () => {
  const abort = new DOMException("stop", "AbortError");
  const timeout = new DOMException("too late", "TimeoutError");
  for (const own of [abort, timeout, coded("UND_ERR_ABORTED"), coded("ABORT_ERR")]) {
    assert.deepEqual(outcomeOfError(coded("ECONNRESET", { cause: own })), neutral);
    assert.deepEqual(outcomeOfError(new Error("outer", { cause: coded("ECONNRESET", { cause: own }) })), neutral);
    assert.deepEqual(outcomeOfError(new AggregateError([coded("ECONNRESET"), own])), neutral);
    assert.deepEqual(
      outcomeOfError(Object.assign(new Error("outer"), { name: "AbortError", cause: coded("EPIPE") })),
      neutral,
    );
  }
});

test("an error of this package is neutral, whatever caused it and whatever wraps it", () => {
  const ours = coded("DOCSTOKG_STORE", { cause: coded("ECONNREFUSED") });
  assert.deepEqual(outcomeOfError(ours), neutral);
  assert.deepEqual(outcomeOfError(new TypeError("fetch failed", { cause: ours })), neutral);
});

test("a connection that failed on every address is a network failure", () => {
  const both = new AggregateError([coded("ECONNREFUSED"), coded("ENETUNREACH")]);
  assert.deepEqual(outcomeOfError(new TypeError("fetch failed", { cause: both })), unreached);
});

test("an HTTP/2 request that could not be opened is classified by its cause", () => {
  assert.deepEqual(outcomeOfError(coded("UND_ERR_INFO", { cause: coded("ERR_HTTP2_INVALID_HEADER_VALUE") })), neutral);
  assert.deepEqual(outcomeOfError(coded("UND_ERR_INFO", { cause: coded("ECONNRESET") })), interrupted);
});

test("a programming error and a thrown value that is no error are neutral", () => {
  const values = [
    new TypeError("x is not a function"),
    new RangeError("x"),
    undefined,
    null,
    0,
    "ECONNRESET",
    Symbol("x"),
    1n,
    {},
    [],
    () => 1,
  ];
  for (const value of values) assert.deepEqual(outcomeOfError(value), neutral);
});

test("a cyclic chain of causes is classified", () => {
  const first = new Error("first");
  const second = coded("ECONNRESET", { cause: first });
  first.cause = second;
  assert.deepEqual(outcomeOfError(first), interrupted);
  const self = new AggregateError([]);
  self.errors.push(self, self);
  assert.deepEqual(outcomeOfError(self), neutral);
});

test("an endless chain of causes and a huge list of errors are bounded", () => {
  const endless = (): object => ({
    get cause() {
      return endless();
    },
  });
  assert.deepEqual(outcomeOfError(endless()), neutral);
  assert.deepEqual(
    outcomeOfError(new AggregateError(Array.from({ length: 100_000 }, () => ({ code: "EPIPE" })))),
    interrupted,
  );
});

test("throwing getters, hostile proxies and odd types do not make classification throw", () => {
  const fail = () => {
    throw new Error("trap");
  };
  const traps = new Proxy({}, { get: fail, has: fail, getPrototypeOf: fail, ownKeys: fail });
  const revoked = Proxy.revocable([], {});
  revoked.revoke();
  const getters = Object.defineProperties(coded("x"), {
    code: { get: fail },
    name: { get: fail },
    errors: { get: fail },
  });
  for (const value of [
    traps,
    revoked.proxy,
    getters,
    { errors: revoked.proxy },
    { errors: traps },
    { cause: traps, code: 5 },
  ]) {
    assert.deepEqual(outcomeOfError(value), neutral);
  }
  assert.deepEqual(outcomeOfError(Object.assign(coded("EPIPE"), { errors: revoked.proxy, cause: traps })), interrupted);
});

test("any thrown value is a network failure or neutral", () => {
  const link = fc.record(
    {
      code: fc.oneof(fc.constantFrom(...unreachedCodes, ...interruptedCodes, ...neutralCodes), fc.anything()),
      name: fc.anything(),
      cause: fc.anything(),
      errors: fc.anything(),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(fc.anything({ withNullPrototype: true, withBigInt: true }), link), value => {
      const outcome = outcomeOfError(value);
      assert.ok(outcome.kind === "neutral" || (outcome.kind === "failure" && outcome.cause === "network"));
    }),
  );
});

test("any status has exactly one outcome, and only a listed one is a failure", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), status => {
      const { kind } = outcomeOfResponse({ status });
      const expected = FAILURES.includes(status) ? "failure" : status >= 200 && status < 400 ? "success" : "neutral";
      assert.equal(kind, expected);
    }),
  );
});

function coded(code: string, options?: ErrorOptions): Error {
  return Object.assign(new Error(code, options), { code });
}

test("a server that ends an HTTP/2 session normally has not failed, also when the request cannot be sent again", () => {
  const goaway = (code: number) =>
    Object.assign(new Error(`HTTP/2: "GOAWAY" frame received with code ${code}`), { code: "UND_ERR_INFO" });
  assert.equal(outcomeOfError(goaway(0)).kind, "neutral");
  assert.equal(outcomeOfError(goaway(2)).kind, "failure");
});

test("the statuses of missing pages and missing permissions are neutral by default", () => {
  assert.deepEqual([...defaultClassifyRules.neutralStatuses], [401, 403, 404, 410, 451]);
});

test("a replayed status from 200 to 399 is a success", () => {
  const replayed = (status: number) => outcomeOfResponse({ status, isMemento: true });
  assert.deepEqual([199, 200, 399, 400].map(replayed), [neutral, success, success, neutral]);
});

test("an answer that is not HTTP is a network failure, also without a code", () => {
  const parserError = Object.assign(new Error("Invalid header"), { name: "HTTPParserError" });
  assert.deepEqual(outcomeOfError(parserError), interrupted);
});

test("the text of a fault has its class or code, and its message unless that may quote a URL", () => {
  const text = (name: string, message: string, code: unknown = "ECONNRESET") =>
    faultText(new TypeError("fetch failed", { cause: Object.assign(new Error(message), { name, code }) }));
  assert.deepEqual(text("Error", "read ECONNRESET"), { type: "ECONNRESET", message: "read ECONNRESET" });
  assert.deepEqual(text("SocketError", "other side closed"), { type: "SocketError", message: "other side closed" });
  assert.deepEqual(text("Error", "GET http://a.example/?key=1"), { type: "ECONNRESET", message: "ECONNRESET" });
  assert.deepEqual(text("HTTPParserError", "", undefined), { type: "HTTPParserError", message: "HTTPParserError" });
  assert.equal(text("Error", "x".repeat(300))?.message.length, 200);
  assert.deepEqual(faultText({ code: "ECONNRESET" }), { type: "ECONNRESET", message: "ECONNRESET" });
  assert.equal(faultText(new Error("a bug")), undefined);
});
