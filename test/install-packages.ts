import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";

/** Installs the packages of a folder by its lockfile, unless that is done already. Throws an error with npm's output. */
export function installPackages(folder: string): void {
  // npm writes this file last: if it is missing or older than the lockfile, the installation is incomplete.
  const installed = statSync(join(folder, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(join(folder, "package-lock.json")).mtimeMs) return;
  const { status, stderr, error } = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: folder,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm ci in ${folder} failed: ${stderr}`, { cause: error });
}
