/** Writes `test/public-surface.txt`, the committed snapshot of what the package exports: `npm run surface`. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { publicSurface } from "../test/public-surface.ts";

const root = resolve(import.meta.dirname, "..");
const { text, undocumented, unexported } = publicSurface(root);
writeFileSync(resolve(root, "test/public-surface.txt"), text);
for (const name of undocumented) console.log(`no doc comment: ${name}`);
for (const name of unexported) console.log(`not exported: ${name}`);
