import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { hostAndPort } from "../core/text/host.ts";
import { ConfigError, messageOf } from "../errors.ts";
import type { MetricsRegistry } from "./sinks/prometheus-sink.ts";

/** Options of `serveMetrics`. */
export interface ServeMetricsOptions {
  /** A sink made by `prometheusSink`, or any object with a registry. */
  readonly from: {
    /** The metrics to serve. */
    readonly registry: MetricsRegistry;
  };
  /** 0 to 65535; 0 for any free port. */
  readonly port: number;
  /** The loopback address to listen on. @default "127.0.0.1" */
  readonly host?: "127.0.0.1" | "::1" | undefined;
}

/** A running metrics server. */
export interface MetricsServer {
  /** The port that it listens on. */
  readonly port: number;
  /** The URL of `/metrics`. */
  readonly url: string;
  /** Closes the server and its connections. */
  close(): Promise<void>;
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1"]);
/** A web page can make a browser connect to loopback under another host name (DNS rebinding); such requests get 403. */
const OWN_NAMES = /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/i;

/**
 * Serves the metrics on `/metrics`, to this machine only. The server does not keep the process alive.
 * Rejects with a ConfigError when it cannot listen on the port.
 */
export async function serveMetrics({ from, port, host = "127.0.0.1" }: ServeMetricsOptions): Promise<MetricsServer> {
  if (!LOOPBACK.has(host)) throw new RangeError(`host must be 127.0.0.1 or ::1, not ${JSON.stringify(host)}`);
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535))
    throw new RangeError(`port must be a whole number from 0 to 65535, not ${port}`);
  const server = createServer((request, response) => void handleRequest(request, response, from.registry));
  server.unref();
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    const message = `metrics cannot be served on ${hostAndPort(host, port)}: ${cause instanceof Error ? cause.message : cause}`;
    throw new ConfigError([{ where: "port", path: "", message }], { cause });
  }
  const { port: actualPort } = server.address() as AddressInfo;
  const address = hostAndPort(host, actualPort);
  warnOfErrors(server, `the metrics server on ${address}`);
  return {
    port: actualPort,
    url: `http://${address}/metrics`,
    close: async () => {
      server.closeAllConnections();
      if (!server.listening) return;
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * A server without a listener for its errors ends the process, for example if a connection cannot be accepted because no
 * file descriptor is free. The server continues, and only the first error is a warning, because such errors come in series.
 */
export function warnOfErrors(server: Server, name: string): void {
  let hasWarned = false;
  server.on("error", error => {
    if (!hasWarned) process.emitWarning(`${name} has failed: ${messageOf(error)}`, "DocstokgWarning");
    hasWarned = true;
  });
}

async function handleRequest(
  request: IncomingMessage,
  response: ServerResponse,
  registry: MetricsRegistry,
): Promise<void> {
  const respond = (status: number, text: string) =>
    response.writeHead(status, { "content-type": "text/plain" }).end(text);
  request.resume();
  if (!OWN_NAMES.test(request.headers.host ?? ""))
    return void respond(403, "403: only requests to 127.0.0.1, [::1] or localhost are served\n");
  if (request.method !== "GET" && request.method !== "HEAD")
    return void respond(405, "405: only GET and HEAD are served\n");
  if (request.url?.replace(/\?.*/, "") !== "/metrics") return void respond(404, "404: the only path is /metrics\n");
  try {
    const text = await registry.metrics();
    response.writeHead(200, { "content-type": registry.contentType }).end(text);
  } catch {
    respond(500, "500: collecting the metrics failed\n");
  }
}
