import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { redactedText } from "../core/text/redaction.ts";
import { messageOf, StoreError } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { type DashboardActions, HubActions, parseAction } from "./actions.ts";
import { askedName } from "./ask-for-host.ts";
import { allowedHosts, checkDashboardOptions } from "./check-dashboard-options.ts";
import { HubSource } from "./hub-source.ts";
import { LiveFeed } from "./live-feed.ts";
import { pageFiles } from "./page-files.ts";
import { actionLine, type PerformedAction, performedAction } from "./performed-action.ts";
import { jsonBody } from "./request-body.ts";
import { cookieName, type GuardOptions, refusalOf } from "./request-guard.ts";
import type { DashboardSource } from "./source.ts";

/** Options of `createDashboard`. */
export interface DashboardOptions {
  /**
   * The path under which the handler is mounted, without a slash at its end, for servers that pass the whole path
   * (`node:http`, Fastify). Express removes the path of `app.use("/ops", …)` itself. @default ""
   */
  readonly basePath?: string | undefined;
  /**
   * The secret in the URL (`?token=…`), at least 16 characters. The browser keeps it as a cookie. False if the
   * application has checked the user before it calls the handler. @default a random one, see `Dashboard.token`
   */
  readonly token?: string | false | undefined;
  /**
   * The host names under which the server may be called, without a port. Requests under other names are refused, so
   * that another site cannot reach the page by DNS rebinding. `any` for a server that is known by many names, behind a
   * token or a proxy that checks them. @default ["127.0.0.1", "[::1]", "localhost"]
   */
  readonly hosts?: readonly string[] | "any" | undefined;
  /** The page shows the state, and every action is refused. @default false */
  readonly readOnly?: boolean | undefined;
  /**
   * Called with each action that was carried out, such as for an audit log. The page gets its answer when the function
   * has returned, or its promise is settled. If it fails, the action is not undone, and the page shows the error.
   * @default none
   */
  readonly onAction?: ((action: PerformedAction) => void) | undefined;
  /** The clock, for tests. @default systemTime */
  readonly time?: Time | undefined;
}

/**
 * A handler for requests of a Node server. Mount it in `node:http`, Express or Fastify. If the framework has read the
 * body of a request, the request must have it as `body`, as in Express.
 */
export interface Dashboard {
  (request: IncomingMessage, response: ServerResponse): void;
  /** The secret in the URL; undefined with `token: false`. */
  readonly token: string | undefined;
  /** Ends the connections of all pages and stops listening to the hub. The hub stays open. */
  close(): Promise<void>;
}

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
    "form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** A live page about a hub: hosts, limits, queues, circuits, events and policy. Throws a RangeError for a bad option. */
export function createDashboard(hub: Hub, options: DashboardOptions = {}): Dashboard {
  // Before the source listens to the hub.
  checkDashboardOptions(options);
  return dashboardOf(new HubSource(hub, options.time ?? systemTime, new HubActions(hub)), options);
}

/** A dashboard about any source. Closing it closes the source. */
export function dashboardOf(source: DashboardSource, options: DashboardOptions): Dashboard {
  const server = new DashboardServer(source, options);
  const handler = (request: IncomingMessage, response: ServerResponse) => void server.handle(request, response);
  return Object.assign(handler, { token: server.token, close: () => server.close() });
}

class DashboardServer {
  readonly token: string | undefined;
  readonly #source: DashboardSource;
  readonly #basePath: string;
  readonly #guard: GuardOptions;
  readonly #feed: LiveFeed;
  readonly #actionToken = randomBytes(16).toString("hex");
  readonly #actions: DashboardActions | undefined;
  readonly #canAsk: boolean;
  readonly #onAction: DashboardOptions["onAction"];
  readonly #time: Time;

  constructor(source: DashboardSource, options: DashboardOptions) {
    checkDashboardOptions(options);
    const { basePath = "", token = randomBytes(16).toString("hex"), hosts, time = systemTime } = options;
    this.token = token === false ? undefined : token;
    this.#source = source;
    this.#basePath = basePath;
    this.#guard = { token: this.token, hosts: allowedHosts(hosts) };
    this.#actions = options.readOnly ? undefined : source.actions;
    this.#onAction = options.onAction;
    this.#time = time;
    this.#canAsk = source.ask !== undefined && !options.readOnly;
    const actions = this.#actions?.names ?? [];
    const about = { ...source.about, actions, canAsk: this.#canAsk, actionToken: this.#actionToken };
    this.#feed = new LiveFeed(source, about, time);
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    // A browser that disconnects in the middle of a response must not end the process.
    response.on("error", () => undefined);
    if (request.method !== "POST") request.resume();
    // Not resolved against a base URL: a path that begins with two slashes would name another host.
    const url = request.url?.startsWith("/") ? URL.parse(`http://dashboard.invalid${request.url}`) : null;
    const path = url === null ? undefined : this.#pathBelowBase(url.pathname);
    if (url === null || path === undefined) return sendText(response, 404, "404: not found\n");
    const { method = "GET", headers } = request;
    const givenToken = url.searchParams.get("token") ?? undefined;
    const refused = refusalOf({ method, headers, givenToken }, this.#guard, this.#actionToken);
    if (refused !== undefined) return sendText(response, refused.status, refused.text);
    try {
      await this.#serve(path, url, request, response);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else if (error instanceof RangeError) sendText(response, 400, `400: ${error.message}\n`);
      else if (error instanceof StoreError) sendText(response, 503, `503: ${redactedText(error.message)}\n`);
      else sendText(response, 500, "500: the dashboard failed\n");
    }
  }

  async close(): Promise<void> {
    this.#feed.close();
    await this.#source.close();
  }

  async #serve(path: string, url: URL, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "POST") return this.#post(path, request, response);
    switch (path) {
      case "":
      case "/":
        return endsWithSlash(request) ? this.#sendPage(request, response) : redirectToFolder(request, response);
      case "/stream":
        if (request.method !== "GET") sendText(response, 405, "405: only GET is served here\n");
        else if (!(await this.#feed.connect(response))) sendText(response, 503, "503: too many pages are connected\n");
        return;
      case "/state":
        return sendJson(response, await this.#feed.read());
      case "/policy": {
        const name = url.searchParams.get("name") ?? "";
        return sendJson(response, await this.#source.explain(name, url.searchParams.get("role") ?? "metadata"));
      }
      case "/work": {
        const history = await this.#source.workHistory?.(url.searchParams.get("key") ?? "");
        return history === undefined ? sendText(response, 404, "404: no such work\n") : sendJson(response, history);
      }
      default:
        return this.#sendFile(path.slice(1), request, response);
    }
  }

  async #post(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const actions = this.#actions;
    if (path === "/ask") return this.#ask(request, response);
    if (path !== "/actions") return sendText(response, 404, "404: not found\n");
    if (actions === undefined) return sendText(response, 403, "403: this dashboard is read-only\n");
    const from = request.socket.remoteAddress ?? "unknown";
    const action = parseAction(await jsonBody(request), actions.names, await this.#feed.read(), from);
    const result = await actions.run(action);
    this.#source.log.addLine({ atMs: this.#time.wallMs(), ...actionLine(action, from, result) });
    const problem = await this.#notifyApplication(performedAction(action, from, result));
    await this.#feed.refreshAfterChange();
    sendJson(response, problem === undefined ? result : { ...result, text: `${result.text}; ${problem}` });
  }

  async #ask(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { ask } = this.#source;
    if (ask === undefined || !this.#canAsk)
      return sendText(response, 403, "403: this dashboard cannot ask processes\n");
    const result = await ask(askedName(await jsonBody(request)));
    await this.#feed.refreshAfterChange();
    sendJson(response, result);
  }

  /** Calls `onAction`. Returns the problem if that fails: the action stays applied, and the operator sees the problem. */
  async #notifyApplication(action: PerformedAction): Promise<string | undefined> {
    try {
      await this.#onAction?.(action);
      return undefined;
    } catch (error) {
      const problem = `onAction of the application failed, so its log may lack this action: ${redactedText(messageOf(error))}`;
      const { action: name, target } = action;
      this.#source.log.addLine({
        ...{ atMs: this.#time.wallMs(), type: "operator", host: "", role: "", level: "bad", isRoutine: false },
        text: `${name} ${target}: ${problem}`,
      });
      return problem;
    }
  }

  /** Undefined for a path that is not below the base. */
  #pathBelowBase(path: string): string | undefined {
    if (path !== this.#basePath && !path.startsWith(`${this.#basePath}/`)) return undefined;
    return path.slice(this.#basePath.length);
  }

  async #sendPage(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Set with the page itself: after a redirect from another site, a browser would not send a SameSite=Strict cookie.
    if (this.token !== undefined)
      response.setHeader("set-cookie", `${cookieName(this.token)}=${this.token}; Path=/; HttpOnly; SameSite=Strict`);
    await this.#sendFile("index.html", request, response);
  }

  async #sendFile(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = (await pageFiles()).get(name);
    if (file === undefined) return sendText(response, 404, "404: not found\n");
    const isZipped = /\bgzip\b/.test(String(request.headers["accept-encoding"] ?? ""));
    response.setHeader("content-type", file.type);
    if (isZipped) response.setHeader("content-encoding", "gzip");
    const bytes = isZipped ? file.zipped : file.bytes;
    response.setHeader("content-length", bytes.length);
    response.writeHead(200).end(request.method === "HEAD" ? undefined : bytes);
  }
}

/** Express removes the path of the mount from `url` and keeps the whole path in `originalUrl`. */
type MountedRequest = IncomingMessage & { readonly originalUrl?: string };

function fullUrl({ originalUrl, url = "" }: MountedRequest): string {
  return originalUrl ?? url;
}

/** The page loads its files by relative URLs, which need the slash at the end. */
function endsWithSlash(request: MountedRequest): boolean {
  return fullUrl(request).split("?", 1)[0]?.endsWith("/") ?? false;
}

function redirectToFolder(request: MountedRequest, response: ServerResponse): void {
  const [path = "", query] = fullUrl(request).split("?", 2);
  // A path that begins with two slashes would name another host. Browsers read a backslash as a slash.
  const location = `/${path.replace(/^[/\\]+/, "")}/${query === undefined ? "" : `?${query}`}`;
  response.writeHead(302, { location }).end();
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(text);
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value));
}
