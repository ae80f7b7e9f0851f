import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { nodeTarget } from "./node-target.ts";

class SilentAgent extends http.Agent {
  addRequest(): void {
    // Opens no connection.
  }
}

test("the origin of an IPv6 address has brackets and no zone", () => {
  for (const host of ["fe80::1%eth0", "fe80::1", "[fe80::1]"]) {
    const request = http.request({ host, port: 81, path: "/x", agent: new SilentAgent() });
    const expected = { origin: "http://[fe80::1]:81", path: "/x", writtenPath: "/x" };
    assert.deepEqual(nodeTarget(request, { port: 81 }), expected);
  }
});
