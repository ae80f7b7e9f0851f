/**
 * Emits `dist/` from `src/`. The new folder replaces the old one only when the compiler succeeds, so that a failed build
 * breaks nothing and a file deleted from `src/` cannot be shipped.
 */
import { execFileSync } from "node:child_process";
import { renameSync, rmSync } from "node:fs";

const draft = "dist.new";
rmSync(draft, { recursive: true, force: true });
const tsc = "node_modules/typescript/bin/tsc";
execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", draft], { stdio: "inherit" });
rmSync("dist", { recursive: true, force: true });
renameSync(draft, "dist");
