import type { ClientRequest } from "node:http";

/** The options of a request of node:http that say where it goes. */
export interface NodeRequestOptions {
  readonly port?: number | string | null | undefined;
  readonly defaultPort?: number | string | undefined;
  readonly socketPath?: string | undefined;
  lookup?: unknown;
}

export interface NodeTarget {
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  /** As it is written: the path and query, or the complete URL for a proxy. */
  readonly writtenPath: string;
}

/**
 * Where a request of node:http goes. Undefined for a request to which no limits of a host apply: over a Unix socket or
 * named pipe, and CONNECT, which only opens a connection for other requests.
 */
export function nodeTarget(request: ClientRequest, options: NodeRequestOptions): NodeTarget | undefined {
  const { method, path, protocol, host } = request;
  // The options of a request without an agent are not known, but it keeps its own `socketPath`.
  const { socketPath = options.socketPath } = request as ClientRequest & Pick<NodeRequestOptions, "socketPath">;
  if (method === "CONNECT" || socketPath) return undefined;
  // Sent to a proxy, which passes it on to this URL.
  if (/^https?:\/\//i.test(path)) {
    const url = new URL(path);
    return { origin: url.origin, path: `${url.pathname}${url.search}`, writtenPath: path };
  }
  // A URL has no zone (`fe80::1%eth0`): the address has the same limits on every interface.
  const name = host.includes(":") && !host.startsWith("[") ? `[${host.replace(/%.*/s, "")}]` : host;
  const port = options.port || options.defaultPort || portInHostField(request);
  return { origin: new URL(`${protocol}//${name}${port ? `:${port}` : ""}`).origin, path, writtenPath: path };
}

/** For a request without an agent, whose options are not known. */
function portInHostField(request: ClientRequest): string {
  return /:(\d+)$/.exec(String(request.getHeader("host") ?? ""))?.[1] ?? "";
}
