/** The services of a simulated internet, without a network. */
import assert from "node:assert/strict";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import type { SimulatedReply, SimulatedRequest } from "../../src/testing/internet/exchange.ts";
import { makeHostDirectory } from "../../src/testing/internet/host-directory.ts";
import { WORK_SCENARIOS } from "../../src/testing/internet/work-scenarios.ts";

/** A directory in which every scenario occurs twice. */
export const directory = makeHostDirectory({ seed: 1, works: 2 * WORK_SCENARIOS.length, bigOntologyBytes: 1_000_000 });

/** The reply to a GET request for this URL. */
export function ask(url: string, more: Partial<SimulatedRequest> = {}): SimulatedReply {
  const { protocol, host, pathname, search, searchParams } = new URL(url);
  return directory.answer({
    method: "GET",
    isTls: protocol === "https:",
    host,
    path: pathname,
    search,
    query: searchParams,
    headers: {},
    body: "",
    earlierRequests: 0,
    wallMs: Date.UTC(2026, 10, 16, 12),
    ...more,
  });
}

export function textOf({ body }: SimulatedReply): string {
  assert.ok(body instanceof Uint8Array);
  return Buffer.from(body).toString();
}

// biome-ignore lint/suspicious/noExplicitAny: tests read single fields of JSON responses
export function bodyOf(reply: SimulatedReply): any {
  return JSON.parse(textOf(reply));
}

/** The first work of a scenario. */
export function workOf(scenario: SimulatedWork["scenario"]): SimulatedWork {
  const work = directory.works.find(each => each.scenario === scenario);
  assert.ok(work !== undefined, scenario);
  return work;
}
