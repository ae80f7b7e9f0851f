import type { Listeners } from "../../listeners.ts";
import type { HttpEvent } from "../http-events.ts";
import type { BypassedRequest } from "./bypass-detector.ts";
import { BypassedHosts } from "./bypassed-hosts.ts";

/** Reports requests that did not go through a hub: an event for each, and a process warning for the first. */
export class BypassReports {
  readonly #listeners: Listeners<HttpEvent>;
  /** The hosts of calls of `hub.fetch` that did not reach the hub. */
  readonly #unseenHosts = new BypassedHosts();
  #hasWarned = false;

  constructor(listeners: Listeners<HttpEvent>) {
    this.#listeners = listeners;
  }

  /** Reports a request that bypasses the installed hub. */
  add({ host, client, stack }: BypassedRequest): void {
    const message =
      `a request to ${host} bypasses the installed hub, so no limit applies to it: it was sent with ${client}, by a ` +
      "client with a dispatcher or agent of its own. Pass hub.dispatcher(), hub.agents() or hub.fetch to that client. " +
      "Requests to further hosts only emit the event bypassed";
    this.#report(host, client, message, stack);
  }

  /** Reports a response that the fetch below `hub.fetch` got without the hub. */
  addUnseen(url: string): void {
    const host = this.#unseenHosts.add(url);
    if (host === undefined) return;
    const message =
      `hub.fetch: the response of ${host} did not come through the hub, so no limit applies: globalThis.fetch was replaced ` +
      "before docstokg was loaded, by a function that does not use the dispatcher of the hub. Load docstokg before the code " +
      "that replaces it. Responses of further hosts only emit the event bypassed";
    this.#report(host, "fetch", message, undefined);
  }

  #report(host: string, client: string, message: string, stack: string | undefined): void {
    this.#listeners.emit({ event_type: "bypassed", host, client });
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(message, { type: "DocstokgWarning", ...(stack === undefined ? {} : { detail: stack }) });
  }
}
