/** The program as a process of its own, from the sources. */
import { main } from "../../src/cli/docstokg.ts";

await main(process);
