/** Inspects every hostile file: `node inspect-hostile.ts <bytes>`. Prints the name of each when it is done. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspectFile } from "../../src/ontology/file-inspection.ts";
import { HOSTILE_FILES } from "./hostile-files.ts";

const bytes = Number(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), "hostile-"));
try {
  for (const [name, make] of Object.entries(HOSTILE_FILES)) {
    writeFileSync(join(folder, "file"), make(bytes));
    await inspectFile(join(folder, "file"), "full");
    process.stdout.write(`${name}\n`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
