/** One process of several that share a store: fetches what it is told to, and says what came of it. */
import { isDocstokgError } from "../../src/errors.ts";
import { createHub } from "../../src/http/create-hub.ts";

const [store = ""] = process.argv.slice(2);
const circuit = { fail_max: 2, reset_timeout_s: 2 };
const hub = await createHub({
  env: {},
  store: store as `sqlite:${string}`,
  cache: false,
  retry: false,
  policy: {
    ratelimits: { extends: "none", defaults: { metadata: { rates: "1000/SECOND", max_delay_ms: 0 } } },
    breakers: {
      extends: "none",
      defaults: { ...circuit, roles: { metadata: circuit }, half_open: { jitter_ms: 0 } },
      advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
    },
  },
});

process.on("message", async (url: string) => {
  if (url === "close") {
    await hub.close();
    process.disconnect();
    return;
  }
  try {
    const response = await hub.fetch(url);
    await response.arrayBuffer();
    process.send?.({ status: response.status });
  } catch (error) {
    // fetch wraps what the dispatcher says.
    const cause = (error as Error).cause ?? error;
    if (!isDocstokgError(cause)) throw error;
    process.send?.({ code: cause.code, remainingMs: "cooldownRemainingMs" in cause ? cause.cooldownRemainingMs : 0 });
  }
});
process.send?.("ready");
