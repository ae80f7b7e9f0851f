import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Dashboard } from "../../dashboard/dashboard.ts";
import type { PerformedAction } from "../../dashboard/performed-action.ts";
import { messageOf } from "../../errors.ts";
import { codeOf } from "../../http/error-code.ts";
import { warnOfErrors } from "../../telemetry/metrics-server.ts";
import { systemTime } from "../../time/system-time.ts";
import { usageError } from "../usage-error.ts";

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

/** Errors that another port would avoid. */
const PORT_ERRORS: ReadonlySet<string | undefined> = new Set(["EADDRINUSE", "EACCES"]);

/** Rejects with an error that names the flag if it cannot listen: a ConfigError, unless the port is not free. */
export async function serveDashboard(
  dashboard: Dashboard,
  { port, address }: { readonly port: number; readonly address: string },
  flags: ListenFlags,
): Promise<ServedDashboard> {
  const server = createServer(dashboard);
  server.listen(port, address);
  try {
    await once(server, "listening");
  } catch (cause) {
    await dashboard.close();
    const problem = `cannot listen on ${address}:${port}: ${messageOf(cause)}`;
    const code = codeOf(cause);
    if (!PORT_ERRORS.has(code)) throw usageError(flags.address ?? flags.port, problem, { cause });
    // The exit code is that of a system error: the same flags may work later.
    throw Object.assign(new Error(`${flags.port}: ${problem}`, { cause }), { code, syscall: "listen" });
  }
  const { port: actual } = server.address() as AddressInfo;
  const host = address.includes(":") ? `[${address}]` : address;
  warnOfErrors(server, `the dashboard server on ${host}:${actual}`);
  return {
    url: `http://${host}:${actual}/${dashboard.token === undefined ? "" : `?token=${dashboard.token}`}`,
    close: async () => {
      await dashboard.close();
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A line of the audit log: time, action, target, client, reason and result. */
export function auditLine({ action, target, seconds, rates, reason, from, result }: PerformedAction): string {
  const what = rates === "" ? action : `${action} ${rates}`;
  const duration = seconds > 0 ? ` for ${seconds} s` : "";
  return `${new Date(systemTime.wallMs()).toISOString()} ${what} ${target}${duration} by ${from}: ${reason} (${result})`;
}
