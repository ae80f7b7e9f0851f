/** Stores results, one file for each scenario. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseResult, type ScenarioResult } from "./result.ts";

export class Archive {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  keep(result: ScenarioResult): void {
    mkdirSync(this.#folder, { recursive: true });
    writeAtomically(this.#fileOf(result.scenario), `${JSON.stringify(result, undefined, 2)}\n`);
  }

  /** The stored results, in the order of the given names. */
  kept(ids: readonly string[]): readonly ScenarioResult[] {
    return ids.flatMap(id => {
      const text = readIfPresent(this.#fileOf(id));
      return text === undefined ? [] : [parseResult(text, this.#fileOf(id))];
    });
  }

  #fileOf(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}

/** Written atomically. */
export function writeAtomically(file: string, text: string): void {
  const part = `${file}.${process.pid}.part`;
  writeFileSync(part, text);
  renameSync(part, file);
}

/** Undefined if the file does not exist. */
export function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
