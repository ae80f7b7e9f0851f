/**
 * Runs `ontofetch pull`: `node pull-process.ts <folder> <network as JSON>`. Prints the result of each source, when it
 * wrote each request, how often it lost the shared store, and with `--expose-gc` how much memory it holds at most.
 */
import { Ontofetch } from "../../src/ontology/ontofetch.ts";
import { loadOntofetchSettings } from "../../src/ontology/ontofetch-settings.ts";
import { recordWrites } from "../http/write-stamps.ts";
import { outcomes } from "./outcomes.ts";
import type { PullReport } from "./pull-in-process.ts";

/** The pull of a large file takes seconds. */
const SAMPLE_MS = 250;
const [folder = "", network = "{}"] = process.argv.slice(2);
const writes = recordWrites();
let outages = 0;
let liveBytes = 0;
/**
 * Memory that is still in use after a collection: unlike the size of the process, it does not depend on when it is
 * collected.
 */
const sample = () => {
  if (globalThis.gc === undefined) return;
  globalThis.gc();
  // A collection leaves the memory of unused buffers to a thread; the next one waits for it.
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  liveBytes = Math.max(liveBytes, heapUsed + external);
};
const sampling = setInterval(sample, SAMPLE_MS);
const settings = await loadOntofetchSettings({}, {}, folder);
const ontofetch = await Ontofetch.open(settings, {
  env: {},
  network: JSON.parse(network),
  listener: ({ event_type }) => {
    if (event_type === "store_away") outages += 1;
  },
});
const results = await ontofetch.pull(settings.sources, { all: true });
clearInterval(sampling);
sample();
await ontofetch.close("pull");
const report: PullReport = {
  outcomes: outcomes(results),
  writesUs: writes.allUs,
  outages,
  liveBytes,
};
process.stdout.write(JSON.stringify(report));
