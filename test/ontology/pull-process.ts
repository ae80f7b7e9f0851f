/**
 * A run of `ontofetch pull` as a process of its own: `node pull-process.ts <folder> <network as JSON>`. Prints what became
 * of each source, and how much memory it took at the most.
 */
import { resourceUsage } from "node:process";
import { loadOntofetchSettings } from "../../src/ontology/load-settings.ts";
import { Ontofetch } from "../../src/ontology/ontofetch.ts";
import { outcomes } from "./outcomes.ts";

const [folder = "", network = "{}"] = process.argv.slice(2);
const settings = await loadOntofetchSettings({}, {}, folder);
const ontofetch = await Ontofetch.open(settings, { env: {}, network: JSON.parse(network) });
const results = await ontofetch.pull(settings.sources, { isAll: true });
await ontofetch.close("pull");
process.stdout.write(JSON.stringify({ outcomes: outcomes(results), maxRssBytes: resourceUsage().maxRSS * 1024 }));
