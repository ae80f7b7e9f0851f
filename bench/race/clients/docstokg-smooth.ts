import type { Client, Setting } from "../client.ts";
import { openHub } from "./docstokg.ts";

/** As one configures it for a server that is known to count in two buckets. */
export function open(setting: Setting): Promise<Client> {
  return openHub(setting, "smooth");
}
