/** One process of several that share their limits: fetches so often, then says when it was done. */
import { createHub } from "../../src/http/create-hub.ts";

const [store = "", origin = "", rates = "", times = ""] = process.argv.slice(2);
const hub = await createHub({
  env: {},
  store: store as `sqlite:${string}`,
  cache: false,
  retry: false,
  policy: {
    ratelimits: { extends: "none", defaults: { metadata: { rates, max_delay_ms: 60_000 } } },
    breakers: { extends: "none" },
  },
});
const statuses = await Promise.all(
  Array.from({ length: Number(times) }, async (_, n) => {
    const response = await hub.fetch(`${origin}/${process.pid}/${n}`);
    await response.arrayBuffer();
    return response.status;
  }),
);
await hub.close();
process.stdout.write(JSON.stringify(statuses));
