import assert from "node:assert/strict";
import { test } from "node:test";
import { decideRedirect, type RedirectHop, redirectChainProblem } from "./redirect-hop.ts";

const from = (method: string, url = "https://a.example/x") => ({ url: new URL(url), method });

function hop(status: number, location: string, method = "GET"): RedirectHop {
  const decision = decideRedirect({ status, location }, from(method));
  assert.ok(decision.kind === "hop", JSON.stringify(decision));
  return decision;
}

test("only 301, 302, 303, 307 and 308 with a Location are redirects", () => {
  for (const status of [200, 300, 304, 305, 306, 404]) {
    assert.equal(decideRedirect({ status, location: "/y" }, from("GET")).kind, "none");
  }
  assert.equal(decideRedirect({ status: 302, location: undefined }, from("GET")).kind, "none");
  for (const status of [301, 302, 303, 307, 308]) assert.equal(hop(status, "/y").url.href, "https://a.example/y");
});

test("the next URL has no user name, no password and no fragment", () => {
  assert.equal(hop(302, "//bob:secret@b.example/y?z=1#part").url.href, "https://b.example/y?z=1");
});

test("a target that is not http or https is invalid", () => {
  for (const location of ["file:///etc/passwd", "ftp://b.example/", "javascript:alert(1)", "data:,x"]) {
    assert.deepEqual(decideRedirect({ status: 302, location }, from("GET")), {
      kind: "invalid",
      message: "a.example redirects to a URL that is not http or https",
    });
  }
});

test("a target that is not a URL is invalid", () => {
  for (const location of ["http://[", "http://b.example:99999/"])
    assert.deepEqual(decideRedirect({ status: 302, location }, from("GET")), {
      kind: "invalid",
      message: "a.example redirects to an invalid URL",
    });
});

test("a target in UTF-8 that was read as Latin-1 is the one that the server wrote", () => {
  const asRead = (text: string) => Buffer.from(text).toString("latin1");
  assert.equal(hop(302, asRead("/café")).url.pathname, "/caf%C3%A9");
  assert.equal(hop(302, asRead("/中文?q=ü")).url.href, "https://a.example/%E4%B8%AD%E6%96%87?q=%C3%BC");
  // Latin-1 itself, and text that is decoded already.
  assert.equal(hop(302, "/café").url.pathname, "/caf%C3%A9");
  assert.equal(hop(302, "/中Ã©").url.pathname, "/%E4%B8%AD%C3%83%C2%A9");
});

test("303 turns every method except HEAD into GET, 301 and 302 only POST, 307 and 308 none", () => {
  const methods = (method: string) => [301, 302, 303, 307, 308].map(status => hop(status, "/y", method).method);
  assert.deepEqual(methods("GET"), ["GET", "GET", "GET", "GET", "GET"]);
  assert.deepEqual(methods("HEAD"), ["HEAD", "HEAD", "HEAD", "HEAD", "HEAD"]);
  assert.deepEqual(methods("POST"), ["GET", "GET", "GET", "POST", "POST"]);
  assert.deepEqual(methods("PUT"), ["PUT", "PUT", "GET", "PUT", "PUT"]);
  assert.deepEqual([hop(302, "/y", "POST").dropsBody, hop(307, "/y", "POST").dropsBody], [true, false]);
});

test("credentials stay on their origin, and a request without body has no content headers", () => {
  const custom = ["x-api-key", "x-auth-token", "ocp-apim-subscription-key", "x-amz-security-token"];
  const names = ["host", "accept", "content-type", "authorization", "cookie", ...custom];
  const kept = (decision: RedirectHop) => names.filter(name => !decision.dropsHeader(name));
  assert.deepEqual(kept(hop(307, "/y", "POST")), names.slice(1));
  assert.deepEqual(kept(hop(302, "/y", "POST")), ["accept", "authorization", "cookie", ...custom]);
  assert.deepEqual(kept(hop(307, "https://b.example/", "POST")), ["accept", "content-type"]);
  assert.deepEqual(kept(hop(307, "http://a.example/x", "POST")), ["accept", "content-type"]);
});

test("a chain ends at a request that was sent before, and after max redirects", () => {
  const limits = { host: "a.example", max: 2 };
  assert.equal(redirectChainProblem(["a", "b"], "c", limits), undefined);
  assert.match(redirectChainProblem(["a", "b"], "a", limits) ?? "", /^redirect loop: /);
  assert.equal(
    redirectChainProblem(["a", "b", "c"], "d", limits),
    "more than 2 redirects; the last one leads to a.example",
  );
  assert.equal(
    redirectChainProblem(["a", "b", "c"], "d", { ...limits, limitName: "maxRedirections" }),
    "more than 2 redirects (maxRedirections); the last one leads to a.example",
  );
});
