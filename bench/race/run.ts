/**
 * `npm run bench:race -- [--quick] [--only R5,r6-redis] [--clients docstokg,p-queue] [--seed text] [--render]`: every client through
 * every scenario, one at a time. Each scenario's results are kept, and `docs/benchmarks.md` is written from all of them:
 * one that is run again leaves the others as they are. A quick run keeps and writes nothing.
 * Exit codes: 0 done, 1 the race failed, 2 called wrongly. A missed figure is no failure: the machine may be busy.
 */
import { UsageError } from "./arguments.ts";
import { main } from "./main.ts";

process.exitCode = await main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof UsageError ? error.message : error);
  return error instanceof UsageError ? 2 : 1;
});
