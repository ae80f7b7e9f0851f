/**
 * Fails when `src/` or `web/` exports a name that nothing outside its own file imports.
 * Names that the entry points of the package re-export count as used: they are the public surface.
 */
import { globSync, readFileSync } from "node:fs";
import { relative, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const entries = new Set(["src/index.ts", ...entryPoints(), "src/cli/docstokg.ts", "src/cli/ontofetch.ts"]);
const files = globSync(["{src,web,test,scripts,bench,sim,chaos,mutation,fuzz}/**/*.ts"], {
  cwd: root,
  exclude: path => path.includes("node_modules"),
});
const texts = new Map(files.map(file => [file, readFileSync(resolve(root, file), "utf8")]));

const importedNames = new Map<string, Set<string>>();
const importedNamespaces = new Set<string>();
for (const [file, text] of texts) {
  for (const [, names, star, from = ""] of text.matchAll(
    /(?:import|export)\s+(?:type\s+)?(?:\{([^}]*)\}|(\*)(?:\s+as\s+\w+)?)\s+from\s+"(\.[^"]+)"/g,
  )) {
    const target = relative(root, resolve(root, file, "..", from));
    if (star) importedNamespaces.add(target);
    const importedHere = importedNames.get(target) ?? new Set();
    for (const name of names?.split(",") ?? []) {
      importedHere.add(
        name
          .trim()
          .replace(/^type\s+/, "")
          .replace(/\s+as\s+.*/, ""),
      );
    }
    importedNames.set(target, importedHere);
  }
}

// A module that is imported when it is needed: `(await import("./run.ts")).run`.
for (const [file, text] of texts) {
  for (const [, from = "", name = ""] of text.matchAll(/\(await import\("(\.[^"]+)"\)\)\.(\w+)/g)) {
    const target = relative(root, resolve(root, file, "..", from));
    importedNames.set(target, (importedNames.get(target) ?? new Set()).add(name));
  }
}

const unused: string[] = [];
for (const [file, text] of texts) {
  if (!/^(?:src|web)\//.test(file) || entries.has(file) || importedNamespaces.has(file)) continue;
  for (const [, kind = "", name = ""] of text.matchAll(
    /^export\s+(?:abstract\s+|async\s+)?(const|function\*?|class|interface|type)\s+(\w+)/gm,
  )) {
    // A type that other exports of the file mention is part of their signature.
    const isMentioned = /interface|type/.test(kind) && text.split(new RegExp(`\\b${name}\\b`)).length > 2;
    if (!isMentioned && !importedNames.get(file)?.has(name))
      unused.push(`${file}: ${name} is exported but never imported`);
  }
}
for (const line of unused) console.error(line);
if (unused.length > 0) process.exitCode = 1;

/** The sources behind the `exports` of package.json. */
function entryPoints(): readonly string[] {
  const { exports } = JSON.parse(readFileSync(resolve(root, "package.json"), "utf8"));
  return Object.values<string | { default: string }>(exports)
    .map(entry => (typeof entry === "string" ? entry : entry.default))
    .filter(path => path.startsWith("./dist/"))
    .map(path => path.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
}
