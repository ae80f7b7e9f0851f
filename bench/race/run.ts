/**
 * `npm run bench:race -- [--quick] [--only R5,r6-redis] [--clients docstokg,p-queue] [--seed text] [--render]`: runs
 * every client in every scenario, one at a time. The results of each scenario are stored, and `docs/benchmarks.md` is
 * written from all stored results. A quick run stores and writes nothing. Exit codes: 0 done, 1 the race failed, 2
 * wrong arguments. A missed target is no failure: the machine may be busy.
 */
import { UsageError } from "./arguments.ts";
import { main } from "./main.ts";

process.exitCode = await main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof UsageError ? error.message : error);
  return error instanceof UsageError ? 2 : 1;
});
