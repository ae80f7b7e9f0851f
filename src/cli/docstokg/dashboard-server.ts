import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Dashboard } from "../../dashboard/dashboard.ts";
import { messageOf } from "../../errors.ts";
import { usageError } from "../usage-error.ts";

export interface ServedDashboard {
  /** The address of the page, with its token. */
  readonly url: string;
  /** Closes the server, its connections and the dashboard. */
  close(): Promise<void>;
}

/** Rejects with a ConfigError if it cannot listen. */
export async function serveDashboard(
  dashboard: Dashboard,
  { port, address }: { readonly port: number; readonly address: string },
): Promise<ServedDashboard> {
  const server = createServer(dashboard);
  server.listen(port, address);
  try {
    await once(server, "listening");
  } catch (cause) {
    await dashboard.close();
    throw usageError("--port", `cannot listen on ${address}:${port}: ${messageOf(cause)}`, { cause });
  }
  const { port: actual } = server.address() as AddressInfo;
  const host = address.includes(":") ? `[${address}]` : address;
  return {
    url: `http://${host}:${actual}/${dashboard.token === undefined ? "" : `?token=${dashboard.token}`}`,
    close: async () => {
      await dashboard.close();
      server.close();
      server.closeAllConnections();
    },
  };
}
