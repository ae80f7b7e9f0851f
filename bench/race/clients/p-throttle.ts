import pThrottle from "p-throttle";
import type { Client, Setting } from "../client.ts";
import { nested, peerClient, type Turns } from "../peer.ts";

export async function open(setting: Setting): Promise<Client> {
  return peerClient(
    setting,
    nested(setting, ({ limit, windowMs }): Turns => {
      const throttle = pThrottle({ limit, interval: windowMs, strict: true });
      return throttle((task: Parameters<Turns>[0]) => task());
    }),
  );
}
