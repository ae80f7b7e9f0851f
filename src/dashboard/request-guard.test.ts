import assert from "node:assert/strict";
import { test } from "node:test";
import { cookieName, type GuardedRequest, LOOPBACK_NAMES, refusalOf } from "./request-guard.ts";

const TOKEN = "0123456789abcdef";
const ACTION = "fedcba9876543210";
const OPTIONS = { token: TOKEN, hosts: LOOPBACK_NAMES };
const COOKIE = `${cookieName(TOKEN)}=${TOKEN}`;

function refusal(request: Partial<GuardedRequest>, options = OPTIONS): number | undefined {
  const { method = "GET", headers = {}, givenToken } = request;
  return refusalOf({ method, headers: { host: "127.0.0.1:8080", ...headers }, givenToken }, options, ACTION)?.status;
}

test("a request needs the token, in its address or in the cookie", () => {
  assert.equal(refusal({}), 403);
  assert.equal(refusal({ givenToken: "0123456789abcdeF" }), 403);
  assert.equal(refusal({ givenToken: TOKEN }), undefined);
  assert.equal(refusal({ headers: { cookie: `other=1; ${COOKIE}` } }), undefined);
  assert.equal(refusal({ headers: { cookie: `other-${COOKIE}` } }), 403);
  assert.equal(refusal({}, { ...OPTIONS, token: undefined } as never), undefined);
});

test("a request under another host name is refused, so that a site cannot reach the page through DNS", () => {
  const named = (host: string) => refusal({ headers: { host }, givenToken: TOKEN });
  assert.equal(named("evil.example:8080"), 403);
  assert.equal(named("127.0.0.1.evil.example"), 403);
  assert.equal(named(""), 403);
  assert.equal(named("localhost:8080"), undefined);
  assert.equal(named("LOCALHOST"), undefined);
  assert.equal(named("[::1]:8080"), undefined);
});

test("a request that another site makes the browser send is refused, and a link to the page is not", () => {
  const from = (site: string, mode: string) =>
    refusal({ headers: { cookie: COOKIE, "sec-fetch-site": site, "sec-fetch-mode": mode } });
  assert.equal(from("cross-site", "no-cors"), 403);
  assert.equal(from("same-site", "cors"), 403);
  assert.equal(from("same-origin", "cors"), undefined);
  assert.equal(from("none", "navigate"), undefined);
  assert.equal(from("cross-site", "navigate"), undefined);
});

test("an action needs the origin of the page and the token of its script", () => {
  const post = (headers: Record<string, string>) =>
    refusal({ method: "POST", headers: { cookie: COOKIE, "sec-fetch-site": "same-origin", ...headers } });
  const origin = "http://127.0.0.1:8080";
  assert.equal(post({ origin, "x-docstokg-action": ACTION }), undefined);
  assert.equal(post({ origin }), 403);
  assert.equal(post({ origin, "x-docstokg-action": "wrong" }), 403);
  assert.equal(post({ "x-docstokg-action": ACTION }), 403);
  assert.equal(post({ origin: "http://127.0.0.1:9999", "x-docstokg-action": ACTION }), 403);
  assert.equal(post({ origin: "null", "x-docstokg-action": ACTION }), 403);
});

test("other methods are refused", () => {
  assert.equal(refusal({ method: "DELETE", givenToken: TOKEN }), 405);
});
