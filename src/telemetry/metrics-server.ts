import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConfigError } from "../errors.ts";
import type { MetricsRegistry } from "./sinks/prometheus-sink.ts";

export interface ServeMetricsOptions {
  /** A sink made by `prometheusSink`, or whatever else has a registry. */
  readonly from: { readonly registry: MetricsRegistry };
  /** 0 for any that is free. */
  readonly port: number;
  /** An address of this machine alone. @default "127.0.0.1" */
  readonly host?: "127.0.0.1" | "::1" | undefined;
}

export interface MetricsServer {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1"]);
/** A page in a browser may reach loopback by a name of its own; it is told nothing. */
const OWN_NAMES = /^(?:127\.0\.0\.1|\[::1\]|localhost)(?::\d+)?$/i;

/**
 * The metrics as text on `/metrics`, for this machine alone. It does not keep a process alive.
 * Rejects with a ConfigError when the port cannot be had.
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
    const message = `metrics cannot be served on ${host}:${port}: ${cause instanceof Error ? cause.message : cause}`;
    throw new ConfigError([{ where: "port", path: "", message }], { cause });
  }
  const { port: taken } = server.address() as AddressInfo;
  return {
    port: taken,
    url: `http://${host === "::1" ? "[::1]" : host}:${taken}/metrics`,
    close: async () => {
      server.closeAllConnections();
      if (!server.listening) return;
      server.close();
      await once(server, "close");
    },
  };
}

async function handleRequest(
  request: IncomingMessage,
  response: ServerResponse,
  registry: MetricsRegistry,
): Promise<void> {
  const respond = (status: number, text: string) =>
    response.writeHead(status, { "content-type": "text/plain" }).end(text);
  request.resume();
  if (!OWN_NAMES.test(request.headers.host ?? "")) return void respond(403, "for this machine only\n");
  if (request.method !== "GET" && request.method !== "HEAD") return void respond(405, "GET only\n");
  if (request.url?.replace(/\?.*/, "") !== "/metrics") return void respond(404, "there is /metrics\n");
  try {
    const text = await registry.metrics();
    response.writeHead(200, { "content-type": registry.contentType }).end(text);
  } catch {
    respond(500, "the metrics cannot be gathered\n");
  }
}
