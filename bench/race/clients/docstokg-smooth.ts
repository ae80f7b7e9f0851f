import type { Client, ClientSetup } from "../client.ts";
import { openHub } from "./docstokg.ts";

/** Configured for a server that is known to count in two buckets. */
export function open(setup: ClientSetup): Promise<Client> {
  return openHub(setup, "smooth");
}
