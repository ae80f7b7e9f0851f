import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostAndPort } from "../../core/text/host.ts";
import type { Dashboard } from "../../dashboard/dashboard.ts";
import type { PerformedAction } from "../../dashboard/performed-action.ts";
import { messageOf } from "../../errors.ts";
import { warnOfErrors } from "../../telemetry/metrics-server.ts";
import { systemTime } from "../../time/system-time.ts";
import { portError } from "./port-error.ts";

export interface ServedDashboard {
  /** The address of the page, with its token. */
  readonly url: string;
  /** Closes the server, its connections and the dashboard. */
  close(): Promise<void>;
}

/** The flags of the command that set the port and the address. */
export interface ListenFlags {
  readonly port: string;
  /** Undefined if the address is fixed. */
  readonly address?: string | undefined;
}

export interface ListenAddress {
  readonly port: number;
  readonly address: string;
}

/**
 * Rejects with an error that names the flag if it cannot listen: a system error if another port would work, otherwise a
 * ConfigError.
 */
export async function serveDashboard(
  dashboard: Dashboard,
  at: ListenAddress,
  flags: ListenFlags,
): Promise<ServedDashboard> {
  try {
    return (await DashboardPort.listen(at, flags)).serve(dashboard);
  } catch (error) {
    await dashboard.close();
    throw error;
  }
}

/** A port on which this process listens, for a dashboard that is created later. Until then requests get a 503. */
export class DashboardPort implements AsyncDisposable {
  readonly #server: Server;
  /** Such as `http://127.0.0.1:8080`. */
  readonly #origin: string;
  #dashboard: Dashboard | undefined;

  /** Rejects as `serveDashboard` does. */
  static async listen({ port, address }: ListenAddress, flags: ListenFlags): Promise<DashboardPort> {
    const server = createServer();
    server.listen(port, address);
    try {
      await once(server, "listening");
    } catch (cause) {
      const problem = `cannot listen on ${hostAndPort(address, port)}: ${messageOf(cause)}`;
      throw portError(problem, cause, flags.port, flags.address);
    }
    return new DashboardPort(server, address);
  }

  private constructor(server: Server, address: string) {
    const { port } = server.address() as AddressInfo;
    const host = hostAndPort(address, port);
    this.#server = server;
    this.#origin = `http://${host}`;
    warnOfErrors(server, `the dashboard server on ${host}`);
    server.on("request", (request, response) => {
      if (this.#dashboard !== undefined) this.#dashboard(request, response);
      else response.writeHead(503, { "content-type": "text/plain" }).end("503: the run has not begun yet\n");
    });
  }

  serve(dashboard: Dashboard): ServedDashboard {
    this.#dashboard = dashboard;
    const query = dashboard.token === undefined ? "" : `?token=${dashboard.token}`;
    return { url: `${this.#origin}/${query}`, close: () => this[Symbol.asyncDispose]() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dashboard?.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** A line of the audit log: time, action, target, client, reason and result. */
export function auditLine({ action, target, seconds, rates, reason, from, result }: PerformedAction): string {
  const what = rates === "" ? action : `${action} ${rates}`;
  const duration = seconds > 0 ? ` for ${seconds} s` : "";
  return `${new Date(systemTime.wallMs()).toISOString()} ${what} ${target}${duration} by ${from}: ${reason} (${result})`;
}
