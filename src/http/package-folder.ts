import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * The folder of the package. Found by its package.json, because the modules of `src/` and the files of `dist/` that they
 * become are at different depths below it.
 */
export function packageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, "package.json"))) {
    const above = dirname(folder);
    if (above === folder) throw new Error(`no package.json above ${import.meta.dirname}`);
    folder = above;
  }
  return folder;
}
