import assert from "node:assert/strict";
import { test } from "node:test";
import { isConnectionError, isTransient, isUnusableAddress } from "./postgres-errors.ts";

const errorWith = (code: string) => Object.assign(new Error("failed"), { code });

test("a network error of Node is a broken connection and temporary, also if the resolver of names does not answer", () => {
  for (const code of ["ECONNREFUSED", "ECONNRESET", "EPIPE", "EPERM", "EBADF", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL"]) {
    assert.ok(isConnectionError(errorWith(code)), code);
    assert.ok(isTransient(errorWith(code)), code);
  }
});

test("an error in the program or in a certificate is not temporary", () => {
  for (const code of ["ERR_INVALID_ARG_TYPE", "ERR_TLS_CERT_ALTNAME_INVALID", "CERT_HAS_EXPIRED"])
    assert.ok(!isTransient(errorWith(code)), code);
});

test("a server that has become read-only is temporary, and its connections are not used again", () => {
  assert.ok(isConnectionError(errorWith("25006")));
  assert.ok(isTransient(errorWith("25006")));
  assert.ok(!isTransient(errorWith("23505")));
});

test("a certificate that is not trusted and a file that cannot be read are unusable; a broken connection is not", () => {
  for (const code of ["DEPTH_ZERO_SELF_SIGNED_CERT", "ERR_TLS_CERT_ALTNAME_INVALID", "CERT_HAS_EXPIRED"])
    assert.ok(isUnusableAddress(errorWith(code)), code);
  const missing = Object.assign(errorWith("ENOENT"), { syscall: "open" });
  assert.ok(isUnusableAddress(missing) && !isTransient(missing));
  for (const code of ["ECONNRESET", "ETIMEDOUT", "EHOSTUNREACH"]) {
    const lost = Object.assign(errorWith(code), { syscall: "read" });
    assert.ok(!isUnusableAddress(lost) && isTransient(lost), code);
  }
});
