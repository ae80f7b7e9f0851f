/**
 * Emits `dist/` from `src/`, and `dist/web/` (the page of the dashboard) from `web/`. The new folder replaces the old one only when the compiler succeeds, so that a failed build
 * breaks nothing and a file deleted from `src/` cannot be shipped.
 */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";

const draft = "dist.new";
rmSync(draft, { recursive: true, force: true });
const tsc = "node_modules/typescript/bin/tsc";
execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", draft], { stdio: "inherit" });

// The page of the dashboard. The compiler repeats the folders of the sources below its own.
const pageDraft = join(draft, "page-draft");
execFileSync(process.execPath, [tsc, "-p", "web/tsconfig.json", "--noEmit", "false", "--outDir", pageDraft], {
  stdio: "inherit",
});
renameSync(join(pageDraft, "web"), join(draft, "web"));
rmSync(pageDraft, { recursive: true });
for (const file of globSync("web/*.{html,css,svg}")) cpSync(file, join(draft, "web", basename(file)));

rmSync("dist", { recursive: true, force: true });
renameSync(draft, "dist");
