/**
 * One of several processes that share breakers through a store, on a clock that the test steps:
 * `node shared-breaker-process.ts <store>`. Each message is a command, and each command gets one reply.
 */

import { isDocstokgError } from "../../src/errors.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import { assembleHub } from "../../src/http/create-hub.ts";
import { HubPolicy } from "../../src/http/hub-policy.ts";
import { IdleStore } from "../stores/idle-store.ts";
import { openPatientStore } from "../stores/patient-store.ts";
import { SteppedTime } from "./stepped-time.ts";

export type Order = { readonly fetch: string } | { readonly stepMs: number };

export interface Reply {
  readonly status?: number;
  readonly code?: string;
  readonly remainingMs?: number;
}

const [address = ""] = process.argv.slice(2);
const time = new SteppedTime();
const store = new IdleStore(await openPatientStore(address, { time, serverUs: () => time.wallMs() * 1000 }));
const circuit = { fail_max: 2, reset_timeout_s: 600 };
const policy = await HubPolicy.load({
  env: {},
  policy: {
    ratelimits: { extends: "none", defaults: { metadata: { rates: "1000/SECOND", max_delay_ms: 0 } } },
    breakers: {
      extends: "none",
      defaults: { ...circuit, roles: { metadata: circuit }, half_open: { jitter_ms: 0 } },
      advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
    },
  },
});
const breakers = new BreakerRegistry(policy.loaded.breakers.options, { time });
const hub = await assembleHub({ time, cache: false, retry: false }, { policy, breakers, store });

async function outcomeOf(url: string): Promise<Reply> {
  try {
    const response = await hub.fetch(url);
    await response.arrayBuffer();
    return { status: response.status };
  } catch (error) {
    // fetch wraps the error of the dispatcher.
    const cause = (error as Error).cause ?? error;
    if (!isDocstokgError(cause)) return { code: (cause as NodeJS.ErrnoException).code ?? String(cause) };
    return { code: cause.code, remainingMs: "cooldownRemainingMs" in cause ? Number(cause.cooldownRemainingMs) : 0 };
  }
}

process.on("message", async (order: Order) => {
  if ("stepMs" in order) {
    // Minutes within one call would look as if the process had been stopped during it.
    await store.idle();
    time.step(order.stepMs);
  }
  process.send?.("fetch" in order ? await outcomeOf(order.fetch) : {});
});
process.send?.("ready");
