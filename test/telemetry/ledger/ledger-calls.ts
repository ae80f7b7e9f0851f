import { once } from "node:events";
import http from "node:http";
import type { LookupFunction } from "node:net";
import { buffer } from "node:stream/consumers";
import type { Hub } from "../../../src/http/hub.ts";
import type { ScriptStep } from "./ledger-script.ts";
import type { LedgerServer } from "./ledger-server.ts";

/** Every name is this machine. */
const lookup = ((_name, options, callback) => {
  const found = { address: "127.0.0.1", family: 4 };
  if (options.all) callback(null, [found]);
  else callback(null, found.address, found.family);
}) as LookupFunction;

/** What the callers of a batch saw. */
export class CallerLedger {
  readonly #agent: http.Agent;
  readonly #portOf: (host: string) => number;

  /**
   * @param agent of the hub, for calls by node:http
   * @param portOf the port of the server behind a host name
   */
  constructor(agent: http.Agent, portOf: (host: string) => number) {
    this.#agent = agent;
    this.#portOf = portOf;
  }

  /** Calls made, by the host of their URL. */
  readonly calls = new Map<string, number>();
  /** Answers with a `Cache-Status` of the hub, by what it says. */
  readonly cacheStatuses = new Map<string, number>();

  async take(hub: Hub, server: LedgerServer, step: ScriptStep): Promise<void> {
    const controller = new AbortController();
    const calls = Array.from({ length: step.copies }, (_, index) =>
      this.#call(hub, step, index === 0 ? controller.signal : undefined),
    );
    switch (step.kind) {
      case "abort queued":
        controller.abort();
        break;
      case "abort sent":
        await Promise.race([server.arrived(step.path), ...calls]);
        controller.abort();
        break;
      case "leave":
        await Promise.race([server.arrived(step.path), ...calls]);
        controller.abort();
        // A held request without callers is aborted; one that goes on is answered.
        if (step.copies > 1) server.release(step.path);
    }
    await Promise.all(calls);
  }

  async #call(hub: Hub, step: ScriptStep, signal: AbortSignal | undefined): Promise<void> {
    const { url, method, maxWaitMs, maxRedirections, kind, client } = step;
    count(this.calls, new URL(url).hostname);
    const deadlineMs = kind === "deadline" ? 5000 : undefined;
    const own = { method, maxWaitMs, deadlineMs, signal, ...(method === "PUT" && { body: "12345" }) };
    try {
      if (client === "node:http") {
        await hub.with({ maxWaitMs, ...(deadlineMs !== undefined && { deadlineMs }) }, () =>
          this.#nodeCall(step, signal),
        );
      } else if (client === "fetch") {
        const response = await hub.fetch(url, { ...own, signal: signal ?? null, redirect: "manual" });
        this.#answered(response.headers.get("cache-status") ?? undefined);
        if (kind === "cancel body") await response.body?.cancel();
        else await response.arrayBuffer();
      } else {
        const { body, headers } = await hub.request(url, { ...own, signal: signal ?? null, maxRedirections });
        this.#answered(headers["cache-status"] as string | undefined);
        if (kind === "cancel body") body.destroy();
        else await body.arrayBuffer();
      }
    } catch {
      // Refusals, aborts, deadlines and broken connections are expected; the events record which one it was.
    }
  }

  async #nodeCall({ url, method, kind }: ScriptStep, signal: AbortSignal | undefined): Promise<void> {
    const { hostname, pathname } = new URL(url);
    const port = this.#portOf(hostname);
    const options = { agent: this.#agent, lookup, hostname, port, path: pathname, method, ...(signal && { signal }) };
    const request = http.request(options);
    request.end(method === "PUT" ? "12345" : undefined);
    const [response] = await once(request, "response");
    if (kind === "cancel body") response.destroy();
    else await buffer(response);
  }

  #answered(cacheStatus: string | undefined): void {
    if (cacheStatus !== undefined) count(this.cacheStatuses, cacheStatus);
  }
}

export function count<Key>(counts: Map<Key, number>, key: Key, by = 1): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
