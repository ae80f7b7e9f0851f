/**
 * Runs `ontofetch pull`: `node pull-process.ts <folder> <network as JSON>`. Prints the result
 * of each source, when it wrote each request, how often it lost the shared store, and its peak memory.
 */
import { resourceUsage } from "node:process";
import { Ontofetch } from "../../src/ontology/ontofetch.ts";
import { loadOntofetchSettings } from "../../src/ontology/ontofetch-settings.ts";
import { recordWrites } from "../http/write-stamps.ts";
import { outcomes } from "./outcomes.ts";
import type { PullReport } from "./pull-in-process.ts";

const [folder = "", network = "{}"] = process.argv.slice(2);
const writes = recordWrites();
let outages = 0;
const settings = await loadOntofetchSettings({}, {}, folder);
const ontofetch = await Ontofetch.open(settings, {
  env: {},
  network: JSON.parse(network),
  listener: ({ event_type }) => {
    if (event_type === "store_away") outages += 1;
  },
});
const results = await ontofetch.pull(settings.sources, { isAll: true });
await ontofetch.close("pull");
const report: PullReport = {
  outcomes: outcomes(results),
  writesUs: writes.allUs,
  outages,
  maxRssBytes: resourceUsage().maxRSS * 1024,
};
process.stdout.write(JSON.stringify(report));
