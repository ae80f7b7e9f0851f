import PQueue from "p-queue";
import type { Client, ClientSetup } from "../client.ts";
import { nested, peerClient, type TaskRunner } from "../peer.ts";

export async function open(setup: ClientSetup): Promise<Client> {
  return peerClient(
    setup,
    nested(setup, ({ limit, windowMs }): TaskRunner => {
      const queue = new PQueue({ intervalCap: limit, interval: windowMs, strict: true });
      return task => queue.add(task);
    }),
  );
}
