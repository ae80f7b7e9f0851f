/** Runs the program from its sources, as a separate process. */
import { main } from "../../src/cli/docstokg.ts";

await main(process);
