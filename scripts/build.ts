/**
 * Emits `dist/`: the modules and types of `src/`, and in `dist/web/` the page of the dashboard from `web/`. The new
 * folder replaces the old one only when everything succeeds, so that a failed build breaks nothing and a file deleted
 * from `src/` cannot be shipped.
 */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const draft = "dist.new";
rmSync(draft, { recursive: true, force: true });
const tsc = "node_modules/typescript/bin/tsc";
execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json", "--outDir", draft], { stdio: "inherit" });

const entries = entriesOf("package.json");
// Every module that a program loads costs it half a millisecond of CPU, so modules that are always loaded together
// become one file. What is imported on demand stays apart, and so do packages.
await build({
  entryPoints: [
    ...entries,
    "src/cli/docstokg.ts",
    "src/cli/ontofetch.ts",
    "src/http/supported-runtime.ts",
    "src/testing/internet/worker.ts",
  ],
  outdir: draft,
  outbase: "src",
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22.19",
  packages: "external",
  // With `node --enable-source-maps`, stacks name the files and lines of the sources.
  sourcemap: true,
  sourcesContent: false,
  // `sideEffects` of package.json lists the built files and not the sources.
  ignoreAnnotations: true,
  logLevel: "warning",
});

// esbuild changes the order of imports. `supported-runtime` must run before undici is loaded, so its import is put first
// again.
for (const entry of entries) {
  if (!readFileSync(entry, "utf8").includes(`import "./http/supported-runtime.ts";`)) continue;
  const built = entry.replace("src/", `${draft}/`).replace(/\.ts$/, ".js");
  // In the first line, so that the source map stays right.
  writeFileSync(built, `import "./http/supported-runtime.js"; ${readFileSync(built, "utf8")}`);
}

// The page of the dashboard. The output folder of the compiler contains the source folders `web/` and `src/` again; only
// `web/` is kept.
const pageDraft = join(draft, "page-draft");
execFileSync(process.execPath, [tsc, "-p", "web/tsconfig.json", "--noEmit", "false", "--outDir", pageDraft], {
  stdio: "inherit",
});
renameSync(join(pageDraft, "web"), join(draft, "web"));
rmSync(pageDraft, { recursive: true });
for (const file of globSync("web/*.{html,css,svg}")) cpSync(file, join(draft, "web", basename(file)));

rmSync("dist", { recursive: true, force: true });
renameSync(draft, "dist");

/** The sources of the entries of a package. */
function entriesOf(manifest: string): readonly string[] {
  const { exports } = JSON.parse(readFileSync(manifest, "utf8"));
  return Object.values<string | { readonly default: string }>(exports).flatMap(entry =>
    typeof entry === "string" ? [] : entry.default.replace("./dist/", "src/").replace(/\.js$/, ".ts"),
  );
}
