import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  freshened,
  type HeaderFields,
  invalidatedUrls,
  isSameRepresentation,
  revalidationHeaders,
  storedHeaders,
} from "./stored-fields.ts";

test("fields of the connection and of proxies are not stored, and neither are those that Connection names", () => {
  const connection = ["keep-alive, X-Trace", "close"];
  const hops = { te: "x", trailer: "x", upgrade: "x", "keep-alive": "5", "transfer-encoding": "chunked" };
  const proxy = { "proxy-authenticate": "x", "proxy-connection": "x", "proxy-authentication-info": "x" };
  const kept = { "content-type": "text/html", "set-cookie": ["a=1", "b=2"], "x-proxy": "1" };
  assert.deepEqual(storedHeaders({ connection, ...hops, ...proxy, "x-trace": "1", ...kept }), kept);
});

test("an undefined field is not stored, and a field named __proto__ is stored like any other", () => {
  const odd: HeaderFields = JSON.parse('{"__proto__":["x"]}');
  assert.deepEqual(storedHeaders({ etag: undefined }), {});
  assert.equal(JSON.stringify(storedHeaders(odd)), '{"__proto__":["x"]}');
  assert.deepEqual(storedHeaders({ connection: "__proto__", etag: '"a"' }), { etag: '"a"' });
});

test("a revalidation sends the stored validators unchanged", () => {
  assert.deepEqual(revalidationHeaders({}), {});
  assert.deepEqual(revalidationHeaders({ etag: 'W/"a,b"' }), { "if-none-match": 'W/"a,b"' });
  const lastModified = "Sun, 01 Nov 2026 12:00:00 GMT";
  assert.deepEqual(revalidationHeaders({ etag: ' "a"', "last-modified": lastModified }), {
    "if-none-match": '"a"',
    "if-modified-since": lastModified,
  });
  assert.deepEqual(revalidationHeaders({ etag: ['"a"', '"b"'] }), { "if-none-match": '"a"' });
});

test("an etag of * is not sent", () => {
  assert.deepEqual(revalidationHeaders({ etag: "*" }), {});
  assert.deepEqual(revalidationHeaders({ etag: "" }), {});
});

test("a 304 with another strong etag does not match the stored response", () => {
  assert.equal(isSameRepresentation({ etag: '"a"' }, { etag: '"b"' }), false);
  assert.equal(isSameRepresentation({ etag: 'W/"a"' }, { etag: '"b"' }), false);
  assert.equal(isSameRepresentation({}, { etag: '"a"' }), false);
});

test("a 304 with the stored etag, a weak one or none matches the stored response", () => {
  assert.equal(isSameRepresentation({ etag: '"a"' }, { etag: '"a"' }), true);
  assert.equal(isSameRepresentation({ etag: 'W/"a"' }, { etag: '"a"' }), true);
  assert.equal(isSameRepresentation({ etag: '"a"' }, { etag: 'W/"a"' }), true);
  assert.equal(isSameRepresentation({ etag: '"a"' }, { etag: 'W/"b"' }), true);
  assert.equal(isSameRepresentation({ etag: '"a"' }, {}), true);
  assert.equal(isSameRepresentation({}, {}), true);
});

test("without a tag, a 304 with another date does not match the stored response", () => {
  const [older, newer] = ["Sat, 05 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"];
  assert.equal(isSameRepresentation({ "last-modified": newer }, { "last-modified": older }), false);
  assert.equal(isSameRepresentation({ "last-modified": newer }, { "last-modified": newer }), true);
  assert.equal(isSameRepresentation({ "last-modified": newer }, {}), true);
  assert.equal(isSameRepresentation({}, { "last-modified": newer }), true);
  const tag = { etag: '"a"' };
  assert.equal(isSameRepresentation({ ...tag, "last-modified": newer }, { ...tag, "last-modified": older }), true);
});

test("a 304 replaces the fields it contains and keeps the others, also without a validator", () => {
  const stored = { etag: '"a"', "cache-control": "max-age=1", "x-old": "1", "set-cookie": ["a=1", "b=2"] };
  const renewed = freshened(stored, { "cache-control": "max-age=9", "x-new": "2", "set-cookie": ["c=3"] });
  assert.deepEqual(renewed, { ...stored, "cache-control": "max-age=9", "x-new": "2", "set-cookie": ["c=3"] });
});

test("a 304 changes no field of the body and adds no field of its connection", () => {
  const stored = { "content-length": "9", "content-encoding": "gzip", "content-type": "text/html" };
  const of304 = {
    "content-length": "0",
    "content-encoding": "br",
    "content-range": "bytes 0-1/2",
    "transfer-encoding": "chunked",
    "proxy-authenticate": "x",
    connection: "x-hop",
    "x-hop": "1",
  };
  assert.deepEqual(freshened(stored, of304), stored);
});

test("Age and Date of the earlier response are removed by a 304", () => {
  const stored = { age: "3000", date: "Sun, 01 Nov 2026 12:00:00 GMT", etag: '"a"' };
  assert.deepEqual(freshened(stored, {}), { etag: '"a"' });
  const later = { age: "1", date: "Sun, 01 Nov 2026 13:00:00 GMT" };
  assert.deepEqual(freshened(stored, later), { ...stored, ...later });
});

test("applying the same 304 twice gives the same fields", () => {
  const name = fc.constantFrom("etag", "age", "date", "connection", "te", "content-length", "vary", "x", "__proto__");
  const fields = fc.dictionary(name, fc.constantFrom("a", "x", "etag, x"));
  fc.assert(
    fc.property(fields, fields, (stored, of304) => {
      const once = freshened(stored, of304);
      assert.deepEqual(freshened(once, of304), once);
      assert.deepEqual(storedHeaders(once), once);
    }),
  );
});

const url = "https://a.example/x?y=1";

test("a safe request and a failed one invalidate nothing", () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "TRACE"]) assert.deepEqual(invalidatedUrls(method, 200, url, {}), []);
  for (const status of [100, 400, 404, 500, 503]) assert.deepEqual(invalidatedUrls("POST", status, url, {}), []);
});

test("a successful unsafe request invalidates its own URL, also with an unknown method", () => {
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "FROBNICATE"]) {
    assert.deepEqual(invalidatedUrls(method, 204, url, {}), [url]);
  }
  assert.deepEqual(invalidatedUrls("POST", 303, url, {}), [url]);
});

test("a successful unsafe request invalidates its URL as it was given and in its normal form", () => {
  const given = "https://a.example/old/../doc?q='1'";
  assert.deepEqual(invalidatedUrls("PUT", 204, given, {}), [given, "https://a.example/doc?q=%271%27"]);
});

test("a successful unsafe request invalidates the URLs of Location and Content-Location on the same origin", () => {
  const headers = { location: "/new#part", "content-location": "https://a.example:443/doc" };
  assert.deepEqual(invalidatedUrls("POST", 201, url, headers), [url, "https://a.example/new", "https://a.example/doc"]);
  assert.deepEqual(invalidatedUrls("POST", 201, url, { location: "?y=1" }), [url]);
});

test("URLs of another origin and invalid URLs are not invalidated", () => {
  for (const location of [
    "https://b.example/x",
    "http://a.example/x",
    "//b.example/",
    "https://a.example:444/",
    "http://[",
  ]) {
    assert.deepEqual(invalidatedUrls("POST", 201, url, { location }), [url], location);
  }
  assert.deepEqual(invalidatedUrls("POST", 201, "not a URL", { location: "https://b.example/" }), ["not a URL"]);
});
