/** Random sequences of calls, writes, answers and waits: each response must be one that RFC 9111 permits at its time. */
import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { parseRange, resolveRange } from "../../src/core/cache/byte-range.ts";
import type { Hub } from "../../src/http/hub.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { assertNothingLeft, hubFor, serve, until } from "./kit.ts";

const BODY_BYTES = 40;

const worlds = fc.record({
  maxAgeS: fc.constantFrom(0, 3, 10, 100),
  staleS: fc.constantFrom(0, 5),
  control: fc.constantFrom("", ", must-revalidate", ", no-cache"),
  tag: fc.constantFrom("strong", "weak", "none"),
  /** Whether the server sends one body for each language, and `Vary`. */
  hasLanguages: fc.boolean(),
});
type Drawn<Source> = Source extends fc.Arbitrary<infer Value> ? Value : never;
type World = Drawn<typeof worlds>;

const calls = fc.record({
  kind: fc.constant("call" as const),
  language: fc.constantFrom("en", "de"),
  cache: fc.constantFrom("default", "default", "default", "no-cache", "reload"),
  range: fc.constantFrom(undefined, undefined, "bytes=0-9", "bytes=10-19", "bytes=20-", "bytes=-5"),
  /** Keeps calls from being coalesced. */
  caller: fc.constantFrom("1", "1", "2"),
  isAborted: fc.constantFrom(false, false, false, true),
});
type Call = Drawn<typeof calls>;

const steps = fc.oneof(
  { weight: 4, arbitrary: calls },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("answer" as const), which: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 500, 4000, 20_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("write" as const, "write by another client" as const) }) },
);

/** A resource with versions. The test decides when it answers: first with the head and half of the body. */
class Resource {
  readonly #world: World;
  readonly #time: FakeTime;
  /** When each version was replaced, by its number. */
  readonly replacedMs: number[] = [];
  readonly #answers: (() => void)[][] = [];

  constructor(world: World, time: FakeTime) {
    this.#world = world;
    this.#time = time;
  }

  get version(): number {
    return this.replacedMs.length;
  }

  replace(): void {
    this.replacedMs.push(this.#time.wallMs());
  }

  body(version: number, language: string): string {
    return `${version} ${this.#world.hasLanguages ? language : ""} `.padEnd(BODY_BYTES, "0123456789");
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const parts = [() => this.#answer(request, response, rest => parts.push(rest))];
    this.#answers.push(parts);
  };

  /** Sends the next part of one answer. False when all answers are complete. */
  proceed(which: number): boolean {
    const at = which % this.#answers.length;
    const parts = this.#answers[at];
    if (parts === undefined) return false;
    parts.shift()?.();
    if (parts.length === 0) this.#answers.splice(at, 1);
    return true;
  }

  #answer({ method, headers }: IncomingMessage, response: ServerResponse, later: (rest: () => void) => void): void {
    if (method === "PUT") {
      this.replace();
      response.writeHead(204, { "x-version": this.version }).end();
      return;
    }
    const { maxAgeS, staleS, control, tag: kind, hasLanguages } = this.#world;
    const language = String(headers["accept-language"]);
    const tag = `${kind === "weak" ? "W/" : ""}"${this.version} ${hasLanguages ? language : ""}"`;
    const stale = staleS === 0 ? "" : `, stale-while-revalidate=${staleS}`;
    response.setHeader("cache-control", `max-age=${maxAgeS}${stale}${control}`).setHeader("x-version", this.version);
    if (hasLanguages) response.setHeader("vary", "accept-language");
    if (kind !== "none") response.setHeader("etag", tag);
    if (headers["if-none-match"] === tag && kind !== "none") {
      response.writeHead(304).end();
      return;
    }
    const isRangeWanted = headers["if-range"] === undefined || (headers["if-range"] === tag && kind === "strong");
    const range = isRangeWanted ? parseRange(headers["range"]) : undefined;
    const { start, end } = (range && resolveRange(range, BODY_BYTES)) ?? { start: 0, end: BODY_BYTES };
    const contentRange = `bytes ${start}-${end - 1}/${BODY_BYTES}`;
    response.writeHead(range === undefined ? 200 : 206, range === undefined ? {} : { "content-range": contentRange });
    const body = this.body(this.version, language).slice(start, end);
    response.write(body.slice(0, 2));
    later(() => response.end(body.slice(2)));
  }
}

/** Fails if the response was not current at any time at which RFC 9111 lets the cache take it. */
async function check(
  hub: Hub,
  origin: string,
  resource: Resource,
  world: World,
  call: Call,
  time: FakeTime,
  writtenVersion: number,
) {
  const { language, cache, range, caller } = call;
  const controller = new AbortController();
  const beganMs = time.wallMs();
  const headers = { "accept-language": language, "x-caller": caller, ...(range !== undefined && { range }) };
  if (call.isAborted) setImmediate(() => controller.abort());
  const response = await hub.fetch(origin, { cache, headers, signal: controller.signal });
  const text = await response.text();
  const version = Number(response.headers.get("x-version"));
  const whole = resource.body(version, language);
  const [, first, last] = /^bytes (\d+)-(\d+)/.exec(response.headers.get("content-range") ?? "") ?? [];
  assert.equal(text, first === undefined ? whole : whole.slice(Number(first), Number(last) + 1));
  const staleMs = cache === "default" ? (world.maxAgeS + world.staleS) * 1000 : 0;
  const replacedMs = resource.replacedMs[version] ?? Number.POSITIVE_INFINITY;
  assert.ok(
    replacedMs >= beganMs - staleMs,
    `version ${version} was replaced ${beganMs - replacedMs} ms before the call`,
  );
  assert.ok(
    version >= writtenVersion,
    `version ${version} is older than ${writtenVersion}, which this hub has written`,
  );
}

async function run(t: TestContext, world: World, sequence: readonly Drawn<typeof steps>[]) {
  const time = new FakeTime();
  const resource = new Resource(world, time);
  const { origin } = await serve(t, resource.handle);
  const hub = await hubFor(t, { time, retry: false });
  const pending = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let writtenVersion = 0;
  const start = (work: Promise<void>) => {
    const ended = work.catch(error => void (error.name === "AbortError" || failures.push(error)));
    pending.add(ended);
    void ended.then(() => pending.delete(ended));
  };
  const turns = async () => {
    for (let turn = 0; turn < 6; turn += 1) await new Promise(resolve => setImmediate(resolve));
  };
  const write = async () => {
    const { headers } = await hub.fetch(origin, { method: "PUT" });
    writtenVersion = Math.max(writtenVersion, Number(headers.get("x-version")));
  };
  for (const step of sequence) {
    if (step.kind === "call") start(check(hub, origin, resource, world, step, time, writtenVersion));
    else if (step.kind === "answer") resource.proceed(step.which);
    else if (step.kind === "wait") await time.advance(step.ms);
    else if (step.kind === "write") start(write());
    else resource.replace();
    await turns();
  }
  await until(() => !resource.proceed(0) && pending.size === 0 && hub.snapshot().inFlight === 0);
  await hub.destroy();
  assertNothingLeft(hub);
  assert.deepEqual(failures, []);
}

test("in any sequence, each call gets the bytes of a version that it may get at its time", async t => {
  const property = fc.asyncProperty(worlds, fc.array(steps, { maxLength: 60, size: "max" }), (world, sequence) =>
    run(t, world, sequence),
  );
  await fc.assert(property, { numRuns: 200 });
});
