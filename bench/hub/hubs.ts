/** Hubs with limits that are enforced but never reached. */
import { createHub } from "../../src/http/create-hub.ts";
import type { Hub } from "../../src/http/hub.ts";
import type { HubOptions } from "../../src/http/hub-options.ts";

const RATES = "1000000/SECOND+100000000/HOUR";

export function hubWithWideLimits(options: HubOptions): Promise<Hub> {
  const roles = { metadata: { rates: RATES }, landing: { rates: RATES }, artifact: { rates: RATES } };
  return createHub({ env: {}, policy: { ratelimits: { extends: "none", defaults: roles } }, ...options });
}

/** A listener that only counts, so that the cost of creating the events is measured. */
export class EventCount {
  count = 0;

  readonly listener = (): void => {
    this.count += 1;
  };
}
