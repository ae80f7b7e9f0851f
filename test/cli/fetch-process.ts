/** A program that fetches in an endless loop and prints each status or error code. */
import { setTimeout } from "node:timers/promises";
import { createHub } from "../../src/http/create-hub.ts";

const [store = "", origin = ""] = process.argv.slice(2);
// The process ends with its parent, even if the test fails.
process.stdin.on("end", () => process.exit()).resume();
const hub = await createHub({
  env: {},
  store: store as `sqlite:${string}`,
  cache: false,
  retry: false,
  policy: {
    ratelimits: { extends: "none", defaults: { metadata: { rates: "20/SECOND", max_delay_ms: 10_000 } } },
    breakers: { extends: "none" },
  },
});
for (let n = 1; ; n += 1) {
  const result = await hub.fetch(`${origin}/${n}`).then(
    async response => {
      await response.arrayBuffer();
      return response.status;
    },
    error => error.code,
  );
  process.stdout.write(`${result}\n`);
  await setTimeout(20);
}
