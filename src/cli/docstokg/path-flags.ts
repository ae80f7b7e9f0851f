import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { Flags } from "../program.ts";
import { usageError } from "../usage-error.ts";

const FOLDER_DEFAULT = "papers";

export interface RunPaths {
  readonly folder: string;
  readonly manifest: string;
}

export function addFolderFlag(command: Command): void {
  command.option("-o, --out <folder>", "output folder", FOLDER_DEFAULT);
}

export function addManifestFlag(command: Command): void {
  command.option("--manifest <file>", "manifest database (default: manifest.sqlite in the output folder)");
}

/** For a command that reads the manifest only: its `--out` has no effect beside `--manifest`. */
export function addManifestOnlyFlags(command: Command): void {
  command.option("-o, --out <folder>", `output folder (default: "${FOLDER_DEFAULT}")`);
  addManifestFlag(command);
}

export function pathsOf({ out = FOLDER_DEFAULT, manifest }: Flags): RunPaths {
  const folder = resolve(String(out));
  return { folder, manifest: typeof manifest === "string" ? resolve(manifest) : join(folder, "manifest.sqlite") };
}

/** Throws a ConfigError if there is no manifest at this path: opening it would create one. */
export function checkManifestExists(path: string): void {
  if (existsSync(path)) return;
  const message = `manifest not found: ${path}; set its folder with --out, or the file with --manifest`;
  throw usageError("--manifest", message);
}
