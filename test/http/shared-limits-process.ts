/**
 * One of several processes that share their limits:
 * `node shared-limits-process.ts <store> <origin> <rates> <fetches>`. Prints the statuses and its write stamps.
 */
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import { assembleHub } from "../../src/http/create-hub.ts";
import { HubPolicy } from "../../src/http/hub-policy.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { openPatientStore } from "../stores/patient-store.ts";
import { recordWrites } from "./write-stamps.ts";

export interface MemberReport {
  readonly statuses: readonly number[];
  readonly writesUs: readonly number[];
}

const [address = "", origin = "", rates = "", fetches = ""] = process.argv.slice(2);
const writes = recordWrites();
const policy = await HubPolicy.load({
  env: {},
  policy: {
    ratelimits: { extends: "none", defaults: { metadata: { rates, max_delay_ms: 600_000 } } },
    breakers: { extends: "none" },
  },
});
const breakers = new BreakerRegistry(policy.loaded.breakers.options);
const store = await openPatientStore(address, { time: systemTime });
const hub = await assembleHub({ cache: false, retry: false }, { policy, breakers, store });
const statuses = await Promise.all(
  Array.from({ length: Number(fetches) }, async (_, n) => {
    const response = await hub.fetch(`${origin}/${process.pid}/${n}`);
    await response.arrayBuffer();
    return response.status;
  }),
);
await hub.close();
const report: MemberReport = { statuses, writesUs: writes.allUs };
process.stdout.write(JSON.stringify(report));
