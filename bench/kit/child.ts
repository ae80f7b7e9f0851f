/** Runs one part of a benchmark in this process and sends its report to the parent: `child.ts <bench> <part>`. */
import type { Bench, BenchOptions } from "./bench.ts";

const [benchName = "", partName = "", options = "{}"] = process.argv.slice(2);
const { bench } = (await import(`../${benchName}.ts`)) as { readonly bench: Bench };
const part = await bench.parts[partName]?.();
if (part === undefined) throw new RangeError(`${benchName} has no part ${partName}`);
const report = await part.measure(JSON.parse(options) as BenchOptions);
// The parent disconnects when it has the report. Timers of other libraries would keep this process alive for an hour.
process.once("disconnect", () => process.exit());
process.send?.(report);
