import PQueue from "p-queue";
import type { Client, Setting } from "../client.ts";
import { nested, peerClient, type Turns } from "../peer.ts";

export async function open(setting: Setting): Promise<Client> {
  return peerClient(
    setting,
    nested(setting, ({ limit, windowMs }): Turns => {
      const queue = new PQueue({ intervalCap: limit, interval: windowMs, strict: true });
      return task => queue.add(task);
    }),
  );
}
