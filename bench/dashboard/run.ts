/**
 * `npm run bench:dashboard -- --processes 50 --keys 2000 --events 5000`: what the dashboard costs while many processes
 * work. They share a Redis server and send over a wire without a network. The browser, the server and all processes run on
 * this machine, so processor times are compared and not the throughput.
 */
import { cpus, loadavg } from "node:os";
import { scriptArguments, wholeNumber } from "../../scripts/script-arguments.ts";
import { whyNoRedis } from "../../test/stores/redis-server.ts";
import { startBrowser, whyNoBrowser } from "../../test/telemetry/chromium.ts";
import { formatFigures, formatTable } from "../kit/report.ts";
import { measureFleet } from "./fleet.ts";
import type { DashboardLoad } from "./load.ts";
import { measureHub } from "./single-hub.ts";

const { values } = scriptArguments({
  options: {
    processes: { type: "string", default: "50" },
    keys: { type: "string", default: "2000" },
    events: { type: "string", default: "5000" },
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "4" },
    probes: { type: "string", default: "40" },
  },
});
const load: DashboardLoad = {
  processes: wholeNumber("processes", values.processes),
  hosts: Array.from({ length: wholeNumber("keys", values.keys) }, (_, index) => `host-${index}.example.org`),
  eventsPerSecond: wholeNumber("events", values.events),
  rounds: wholeNumber("rounds", values.rounds),
  seconds: wholeNumber("seconds", values.seconds),
  probes: wholeNumber("probes", values.probes),
};
const missing = whyNoRedis() || whyNoBrowser();
if (missing !== false) {
  console.error(missing);
  process.exit(1);
}
console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}\n`);
const browser = await startBrowser();
try {
  for (const measure of [measureFleet, measureHub]) {
    const { tables, figures } = await measure(browser, load);
    for (const table of tables) console.log(formatTable(table));
    console.log(formatFigures(figures));
  }
} finally {
  await browser.close();
}
process.exit();
