/**
 * `npm run members -- [--store redis|sqlite] [--members 1000] [--processes 4] [--rates 20/SECOND] [--seconds 60]
 * [--callers 2] [--delay 0-200] [--cost]`: many hubs that share one key on a real store (law S7). `--delay` is the time
 * to a Redis server in each direction, spread over the members; `--cost` only measures the server time of one exchange.
 * Exit codes: 0 done, 1 failed, 2 wrong arguments. A missed target is no failure: the machine may be busy.
 */
import { loadavg } from "node:os";
import { oneOf, scriptArguments, wholeNumber } from "../../scripts/script-arguments.ts";
import { parseRates } from "../../src/core/limits/rate.ts";
import { measureMembers } from "./measure-members.ts";
import { scriptCost } from "./script-cost.ts";

const { values } = scriptArguments({
  options: {
    store: { type: "string", default: "redis" },
    members: { type: "string", default: "1000" },
    processes: { type: "string", default: "4" },
    rates: { type: "string", default: "20/SECOND" },
    seconds: { type: "string", default: "60" },
    callers: { type: "string", default: "2" },
    delay: { type: "string", default: "0" },
    cost: { type: "boolean", default: false },
  },
});
console.log(
  `load of the machine: ${loadavg()
    .map(load => load.toFixed(1))
    .join(", ")}`,
);
if (values.cost) await printCosts();
else await printMembers();

async function printCosts(): Promise<void> {
  for (const members of [1, 64, 256, 1000])
    console.log(`${members} members: ${(await scriptCost(members)).toFixed(0)} us of server time for one exchange`);
}

async function printMembers(): Promise<void> {
  const { rates } = values;
  const store = oneOf("store", values.store, ["redis", "sqlite"]);
  const [from = 0, to = from] = values.delay.split("-").map(Number);
  const { sent, rejected, busiest, calls, errors, seconds } = await measureMembers({
    ...{ store, rates, delaysMs: [from, to] },
    ...{ members: wholeNumber("members", values.members), processes: wholeNumber("processes", values.processes) },
    ...{ callers: wholeNumber("callers", values.callers), seconds: wholeNumber("seconds", values.seconds) },
  });
  const total = sent.reduce((sum, count) => sum + count, 0);
  const [rate] = parseRates(rates);
  const possible = rate === undefined ? Number.NaN : (seconds * rate.limit * 1e6) / rate.windowUs;
  console.log(`${sent.length} members, ${rates}, ${seconds.toFixed(0)} s, ${values.delay} ms to the store`);
  console.log(
    `sent ${total}, utilisation ${(total / possible).toFixed(3)} of the limit (${((total / possible) * 1.025).toFixed(3)} of the limit with its guard)`,
  );
  console.log(`rejected ${rejected}, most in any window ${busiest}`);
  if (calls)
    console.log(
      `script calls per request: ${calls.leases.toFixed(2)} for units, ${calls.records.toFixed(2)} for records`,
    );
  const sorted = sent.toSorted((a, b) => a - b);
  console.log(
    `requests of a member: fewest ${sorted[0]}, most ${sorted.at(-1)}; without any: ${sent.filter(count => count === 0).length}`,
  );
  if (sent.length <= 20) console.log(`by member: ${sent.join(", ")}`);
  for (const error of errors) console.log(`error: ${error}`);
}
