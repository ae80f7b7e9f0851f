import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseContentRange } from "../../core/cache/byte-range.ts";
import type { FoundResponse } from "./cache-store.ts";
import { hasRequestedBytes, requestedPart, storablePart } from "./partial-response.ts";

const TEXT = "0123456789";
const tagged = { etag: '"a"' };

function found(status: number, text: string, headers: Record<string, string> = {}): FoundResponse {
  const body = Buffer.from(text);
  const times = { requestedMs: 0, receivedMs: 0 };
  return {
    status,
    statusText: "",
    headers,
    ...times,
    varyNames: [],
    varyKey: "",
    bodyBytes: body.length,
    body: () => body,
  };
}

function get(range: string, ifRange?: string) {
  return { method: "GET", headers: ["range", range, ...(ifRange === undefined ? [] : ["if-range", ifRange])] };
}

/** Status and text that a request gets from a stored response. */
function served(request: ReturnType<typeof get>, stored: FoundResponse): readonly [number, string] {
  const { head, body } = requestedPart(request, stored, stored.body() ?? Buffer.alloc(0));
  assert.equal(head.headers["content-length"] ?? String(body.length), String(body.length));
  return [head.status, body.toString()];
}

test("a range of a complete response is a 206 with its Content-Range, and a range beyond its end a 416", () => {
  const stored = found(200, TEXT, { ...tagged, "content-length": "10", "content-type": "text/plain" });
  assert.deepEqual(served(get("bytes=2-4"), stored), [206, "234"]);
  assert.deepEqual(served(get("bytes=-3"), stored), [206, "789"]);
  assert.deepEqual(served(get("bytes=8-99"), stored), [206, "89"]);
  assert.deepEqual(served(get("bytes=10-"), stored), [416, ""]);
  const { head } = requestedPart(get("bytes=2-4"), stored, Buffer.from(TEXT));
  assert.equal(head.headers["content-range"], "bytes 2-4/10");
  assert.equal(head.headers["etag"], '"a"');
  const beyond = requestedPart(get("bytes=10-"), stored, Buffer.from(TEXT));
  assert.equal(beyond.head.headers["content-range"], "bytes */10");
});

test("If-Range with another validator gets the complete response", () => {
  const stored = found(200, TEXT, tagged);
  assert.deepEqual(served(get("bytes=0-1", '"a"'), stored), [206, "01"]);
  assert.deepEqual(served(get("bytes=0-1", '"b"'), stored), [200, TEXT]);
});

test("a range of an encoded response or of an error response is not served", () => {
  const encoded = found(200, TEXT, { "content-encoding": "gzip" });
  assert.equal(hasRequestedBytes(get("bytes=0-1"), encoded), false);
  assert.deepEqual(served(get("bytes=0-1"), found(404, "gone")), [404, "gone"]);
});

test("a stored part answers exactly the ranges that lie in it", () => {
  const number = fc.nat(12);
  fc.assert(
    fc.property(fc.nat(9), fc.nat(9), number, number, (one, other, first, last) => {
      const [start, end] = [Math.min(one, other), Math.max(one, other) + 1];
      const part = found(206, TEXT.slice(start, end), { "content-range": `bytes ${start}-${end - 1}/10` });
      for (const [range, wanted] of [
        [`bytes=${first}-${last}`, first <= last ? TEXT.slice(first, last + 1) : ""],
        [`bytes=${first}-`, TEXT.slice(first)],
        [`bytes=-${last}`, last === 0 ? "" : TEXT.slice(-last)],
      ] as const) {
        const at = TEXT.indexOf(wanted);
        const isInside = wanted !== "" && at >= start && at + wanted.length <= end;
        const isRange = first <= last || !range.includes(`${first}-${last}`);
        assert.equal(isRange && hasRequestedBytes(get(range), part), isInside, `${range} of ${start}-${end}`);
        if (isInside) assert.deepEqual(served(get(range), part), [206, wanted]);
      }
      assert.equal(hasRequestedBytes({ method: "GET", headers: [] }, part), false);
      assert.equal(hasRequestedBytes({ method: "HEAD", headers: ["range", "bytes=0-1"] }, part), false);
    }),
  );
});

test("parts of one representation join to what a server would send, and become complete", () => {
  const range = fc.tuple(fc.nat(9), fc.nat(9)).map(([a, b]) => [Math.min(a, b), Math.max(a, b) + 1] as const);
  fc.assert(
    fc.property(range, range, ([start, end], [from, to]) => {
      const head = (first: number, last: number) => ({
        status: 206,
        statusText: "",
        headers: { ...tagged, "content-range": `bytes ${first}-${last - 1}/10` },
      });
      const stored = found(206, TEXT.slice(start, end), head(start, end).headers);
      const part = storablePart(head(from, to), [Buffer.from(TEXT.slice(from, to))], stored);
      assert.ok(part);
      const held =
        part.head.status === 200 ? { start: 0, end: 10 } : parseContentRange(part.head.headers["content-range"]);
      assert.ok(held);
      assert.equal(part.body.toString(), TEXT.slice(held.start, held.end));
      const isJoined = from <= end && start <= to;
      assert.equal(held.end - held.start, isJoined ? Math.max(end, to) - Math.min(start, from) : to - from);
      assert.equal(part.head.status === 200, held.start === 0 && held.end === 10);
    }),
  );
});

test("parts without the same strong tag are not joined, and never replace a complete response that may be the same", () => {
  const headers = { "content-range": "bytes 5-9/10" };
  const rest = [Buffer.from("56789")];
  const head = (more: object) => ({ status: 206, statusText: "", headers: { ...headers, ...more } });
  const first = (more: object) => found(206, "01234", { "content-range": "bytes 0-4/10", ...more });
  for (const [one, other] of [
    [{}, {}],
    [{ etag: '"a"' }, { etag: '"b"' }],
    [{ etag: 'W/"a"' }, { etag: 'W/"a"' }],
  ]) {
    assert.equal(storablePart(head(one ?? {}), rest, first(other ?? {}))?.body.toString(), "56789");
  }
  assert.equal(storablePart(head(tagged), rest, first(tagged))?.body.toString(), TEXT);
  assert.equal(storablePart(head({}), rest, found(200, TEXT)), undefined);
  assert.equal(storablePart(head(tagged), rest, found(200, TEXT, tagged)), undefined);
  assert.equal(storablePart(head({ etag: '"b"' }), rest, found(200, TEXT, tagged))?.body.toString(), "56789");
});

test("a part whose length is not the announced one is not stored", () => {
  const head = { status: 206, statusText: "", headers: { "content-range": "bytes 4-9/10" } };
  assert.equal(storablePart(head, [Buffer.from("01234")], undefined), undefined);
});
