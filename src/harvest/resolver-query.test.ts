import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { Hub } from "../http/hub.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Cookies } from "./cookies.ts";
import { queryResolver } from "./resolver-query.ts";
import type { Resolver } from "./resolvers/resolver.ts";

test("a redirect to another origin gets the header fields of the resolver without its credentials", async () => {
  const sent: unknown[] = [];
  const request = async (_: string, { headers }: { readonly headers: Readonly<Record<string, string>> }) => {
    sent.push([headers["accept"], headers["authorization"], headers["X-Api-Key"]]);
    return { statusCode: 200, headers: {}, body: Readable.from([Buffer.from("{}")]) };
  };
  const time = new FakeTime();
  const options = {
    ...{ hub: { request } as unknown as Pick<Hub, "request">, maxWaitMs: 0, cookies: new Cookies(time) },
    minSpeed: { bytes: 1, periodMs: 30_000, time },
  };
  const headers = { accept: "application/json", authorization: "Bearer Sesame", "X-Api-Key": "Sesame" };
  const asked = { url: "https://api.example.org/a", role: "metadata", headers } as const;
  const resolver: Resolver = {
    name: "own",
    needs: [],
    requestFor: () => asked,
    parse: () => ({ kind: "none", reason: "no-copy" }),
  };
  const about = { key: "doi:10.5555/a", ids: { doi: "10.5555/a" } };
  const { signal } = new AbortController();
  for (const url of [asked.url, "https://api.example.org/b", "https://other.example/a"])
    await queryResolver(options, { kind: "ask", resolver, about, request: asked, url }, signal);
  const all = ["application/json", "Bearer Sesame", "Sesame"];
  assert.deepEqual(sent, [all, all, ["application/json", undefined, undefined]]);
});
