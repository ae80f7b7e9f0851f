import pThrottle from "p-throttle";
import type { Client, ClientSetup } from "../client.ts";
import { nested, peerClient, type TaskRunner } from "../peer.ts";

export async function open(setup: ClientSetup): Promise<Client> {
  return peerClient(
    setup,
    nested(setup, ({ limit, windowMs }): TaskRunner => {
      const throttle = pThrottle({ limit, interval: windowMs, strict: true });
      return throttle((task: Parameters<TaskRunner>[0]) => task());
    }),
  );
}
