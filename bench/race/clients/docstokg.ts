import { createHub } from "../../../src/http/create-hub.ts";
import type { HubOptions } from "../../../src/http/hub-options.ts";
import type { RoleLimits } from "../../../src/policy/ratelimit-schema.ts";
import type { Client, ClientSetup } from "../client.ts";
import { type RaceWindow, rateOf } from "../limits.ts";

type Shape = NonNullable<RoleLimits["shape"]>;

export function open(setup: ClientSetup): Promise<Client> {
  return openHub(setup, "burst");
}

/**
 * The policy has the limits of the server and the shipped values for the rest. The times of the breakers are a sixtieth
 * of the shipped ones, because the outages of the race last seconds instead of minutes.
 */
export async function openHub({ limits, random, store, wire, time }: ClientSetup, shape: Shape): Promise<Client> {
  const role = (windows: readonly RaceWindow[]): RoleLimits => ({ rates: windows.map(rateOf), shape });
  const hub = await createHub({
    env: {},
    cache: false,
    random,
    defaults: { maxWaitMs: Number.POSITIVE_INFINITY },
    ...(store !== undefined && { store: store as NonNullable<HubOptions["store"]> }),
    ...(wire && { dispatcher: wire }),
    ...(time && { time }),
    policy: {
      ratelimits: {
        extends: "none",
        defaults: { metadata: role(limits.metadata), ...(limits.artifact && { artifact: role(limits.artifact) }) },
        ...(limits.total && { hosts: { "127.0.0.1": { total: { rates: limits.total.map(rateOf), shape } } } }),
      },
      breakers: {
        extends: "none",
        defaults: {
          reset_timeout_s: 1,
          roles: { metadata: { reset_timeout_s: 0.75 }, artifact: { reset_timeout_s: 2 } },
        },
        advanced: { rolling_window: { window_s: 0.5, cooldown_s: 1 } },
      },
    },
  });
  return {
    async get(url, role) {
      if (wire === undefined) {
        const response = await hub.fetch(url, { role });
        await response.arrayBuffer();
        return response.status;
      }
      const { statusCode, body } = await hub.request(url, { role });
      await body.dump();
      return statusCode;
    },
    close: () => hub.close(),
  };
}
