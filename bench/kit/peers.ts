/** The other libraries, in `bench/node_modules`. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { installPackages } from "../../test/install-packages.ts";

const bench = resolve(import.meta.dirname, "..");

/** Versions by name. */
export function peerVersions(): Readonly<Record<string, string>> {
  const { dependencies } = JSON.parse(readFileSync(resolve(bench, "package.json"), "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return dependencies;
}

export function installPeers(): void {
  installPackages(bench);
}
