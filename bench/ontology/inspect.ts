/** Checks a file as `ontofetch` does: `node inspect.ts <file>`. Prints the statements and the most memory held, in bytes. */
import { limitYoungHeap } from "../../src/cli/young-heap.ts";
import { inspectFile } from "../../src/ontology/file-inspection.ts";

limitYoungHeap();
const [path = ""] = process.argv.slice(2);
const found = await inspectFile(path, "full");
if (found.kind !== "valid") throw new Error(found.problem);
const maxBytes = process.resourceUsage().maxRSS * 1024;
process.stdout.write(JSON.stringify({ statements: found.checks.statements, maxBytes }));
