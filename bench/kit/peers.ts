/** The other libraries, in `bench/node_modules`. */
import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";

const bench = resolve(import.meta.dirname, "..");

/** Versions by name. */
export function peerVersions(): Readonly<Record<string, string>> {
  const { dependencies } = JSON.parse(readFileSync(resolve(bench, "package.json"), "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return dependencies;
}

/** npm writes this file last. If it is missing or older than the lockfile, the installation is not complete. */
export function installPeers(): void {
  const installed = statSync(resolve(bench, "node_modules/.package-lock.json"), { throwIfNoEntry: false });
  if (installed !== undefined && installed.mtimeMs >= statSync(resolve(bench, "package-lock.json")).mtimeMs) return;
  // Its output goes to stderr: stdout is for the numbers.
  const { status, error } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: bench,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) throw new Error("npm ci in bench/ failed", { cause: error });
}
