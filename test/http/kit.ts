import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import type { HubEvent, HubOptions } from "../../src/http/hub-options.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse, number: number) => void;

/** A real server on loopback that remembers what it was asked. */
export interface TestServer {
  readonly origin: string;
  readonly port: number;
  readonly requests: IncomingMessage[];
  /** When each request came, by the server's own clock in milliseconds. */
  readonly arrivalsMs: number[];
  /** TCP connections it was ever offered. */
  connections: number;
}

/** `number` counts the requests from 1. */
export async function serve(t: TestContext, handler: Handler): Promise<TestServer> {
  const seen: TestServer = { origin: "", port: 0, requests: [], arrivalsMs: [], connections: 0 };
  const server = createServer((request, response) => {
    seen.requests.push(request);
    seen.arrivalsMs.push(performance.now());
    handler(request, response, seen.requests.length);
  });
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

export type Limits = Exclude<NonNullable<HubOptions["policy"]>["ratelimits"], string | undefined>;
export type Breakers = Exclude<NonNullable<HubOptions["policy"]>["breakers"], string | undefined>;

export interface TestHubOptions extends Omit<HubOptions, "policy"> {
  readonly limits?: Limits;
  readonly breakers?: Breakers;
}

/** A hub with nothing but what the test says: no shipped policy, no environment, no guard. */
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

/** Everything a hub tells from now on. */
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

/** Waits, without a clock, for something that the network is about to bring. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 200_000; turn += 1) {
    if (isSo()) return;
    await new Promise(resolve => setImmediate(resolve));
  }
  throw new Error("it never came to be");
}
