import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import type { HubEvent, HubOptions } from "../../src/http/hub-options.ts";
import type { BreakersOptions } from "../../src/policy/breaker-schema.ts";
import type { RatelimitsOptions } from "../../src/policy/ratelimit-schema.ts";
import type { FakeTime } from "../../src/testing/fake-time.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse, number: number) => void;

/** A real server on loopback that records its requests. */
export interface TestServer {
  readonly origin: string;
  readonly port: number;
  readonly requests: IncomingMessage[];
  /** When each request arrived, by the clock of this process in ms. */
  readonly arrivalsMs: number[];
  /** Number of TCP connections that were opened. */
  connections: number;
}

/** `number` in the handler counts the requests from 1. */
export async function serve(t: TestContext, handler: Handler): Promise<TestServer> {
  const seen: TestServer = { origin: "", port: 0, requests: [], arrivalsMs: [], connections: 0 };
  const server = createServer((request, response) => {
    seen.requests.push(request);
    seen.arrivalsMs.push(performance.now());
    handler(request, response, seen.requests.length);
  });
  // A client that is blocked for seconds must not find its connections closed.
  server.keepAliveTimeout = 0;
  server.on("connection", () => {
    seen.connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(seen, { origin: `http://127.0.0.1:${port}`, port });
}

export interface TestHubOptions extends Omit<HubOptions, "policy"> {
  readonly limits?: RatelimitsOptions;
  readonly breakers?: BreakersOptions;
}

/** A hub with the options of the test only: no shipped policy, no environment, no guard. */
export async function hubFor(t: TestContext, { limits, breakers, ...options }: TestHubOptions = {}): Promise<Hub> {
  const wideLimit = { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 0 };
  const hub = await createHub({
    env: {},
    policy: {
      ratelimits: {
        extends: "none",
        defaults: { metadata: wideLimit, landing: wideLimit, artifact: wideLimit },
        ...limits,
      },
      breakers: { extends: "none", ...breakers },
    },
    ...options,
  });
  t.after(() => hub.destroy());
  return hub;
}

/** Collects the events of a hub from now on. */
export function recordEvents(hub: Hub): HubEvent[] {
  const events: HubEvent[] = [];
  hub.listen(event => {
    events.push(event);
  });
  return events;
}

export function only<Type extends HubEvent["event_type"]>(events: readonly HubEvent[], type: Type) {
  return events.filter((event): event is HubEvent & { readonly event_type: Type } => event.event_type === type);
}

/** Waits for a condition that the network is about to make true, without a clock. */
export async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 200_000; turn += 1) {
    if (isTrue()) return;
    await new Promise(resolve => setImmediate(resolve));
  }
  throw new Error("the condition did not become true");
}

/** The promise, or an error when it does not settle: a test that hangs shows no reason. */
export async function settles<Result>(promise: Promise<Result>): Promise<Result> {
  let isSettled = false;
  const settled = () => {
    isSettled = true;
  };
  promise.then(settled, settled);
  await until(() => isSettled);
  return promise;
}

/** A server that holds every response until the test ends it, and a hub without retries. */
export async function heldServer(t: TestContext, options: TestHubOptions = {}) {
  const held: ServerResponse[] = [];
  const server = await serve(t, (_, response) => void held.push(response));
  const hub = await hubFor(t, { retry: false, ...options });
  const events = recordEvents(hub);
  const get = async (init: Parameters<typeof hub.fetch>[1] = {}) => (await hub.fetch(server.origin, init)).text();
  const arrived = (count: number) => until(() => held.length === count);
  return { held, server, hub, events, get, arrived };
}

/** No call, slot, queued request or timer is left. */
export function assertNothingLeft(hub: Hub, time?: FakeTime): void {
  const { calls, inFlight, waiting } = hub.snapshot();
  assert.deepEqual(
    { calls, inFlight, waiting, timers: time?.armedTimers ?? 0 },
    { calls: 0, inFlight: 0, waiting: 0, timers: 0 },
  );
}

/** A self-signed certificate for example.org and its key, in PEM. */
export function tlsFixture(): { readonly cert: string; readonly key: string } {
  const read = (name: string) => readFileSync(join(import.meta.dirname, "../fixtures/tls", name), "utf8");
  return { cert: read("cert.pem"), key: read("key.pem") };
}

export const CHUNK = Buffer.alloc(65_536, "x");

/** Sends more than all buffers hold, so that it is sent completely only when it is read. */
export function sendLargeBody(response: ServerResponse): void {
  Readable.from(Array.from({ length: 400 }, () => CHUNK)).pipe(response);
}

/** One request per minute; further ones are queued. */
export const ONE_A_MINUTE = { defaults: { metadata: { rates: "1/MINUTE", guard_ms: 0, max_delay_ms: 100_000 } } };
/** One request per second; further ones are refused. */
export const ONE_A_SECOND = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0 } } };
/** One request per second; further ones are queued. */
export const ONE_A_SECOND_QUEUED = {
  defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 60_000 } },
};
