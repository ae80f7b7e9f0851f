/**
 * The flags that belong to a run and not to a machine. The manifest records them, so that `docstokg retry` and the workers
 * on other machines continue with them.
 */
import { RUN_DEFAULTS } from "../../harvest/run.ts";
import type { Flags } from "../program.ts";

/** By their names in `Flags`. */
const SETTINGS = ["layout", "formats", "metadata", "resolvers", "maxBytes", "patience", "minSpeed"];
const FILTERS = ["fromYear", "toYear", "openOnly", "licence", "type"];

/** The values of a run without these flags. Those without an entry depend on the output folder, or are not set. */
export const RUN_FLAG_DEFAULTS = {
  formats: RUN_DEFAULTS.formats.join(),
  maxBytes: String(RUN_DEFAULTS.maxBytes),
  patience: String(RUN_DEFAULTS.maxBreakerWaitMs / 1000),
  minSpeed: String(RUN_DEFAULTS.minBytesPerSecond),
} as const satisfies Flags;

export function runFlagsOf(flags: Flags): Flags {
  return Object.fromEntries([...SETTINGS, ...FILTERS].map(name => [name, flags[name]]));
}

/** The flags as the manifest records them. */
export function recordedFlags(flags: Flags): string {
  return JSON.stringify(runFlagsOf(flags));
}

/**
 * The flags of a command that continues the latest run of a manifest.
 * @param recorded the flags of that run, as `recordedFlags` returned them. @default the defaults of `docstokg run`
 * @param own the flags of the command, which win
 * @param isFiltered false if the filters of that run do not apply
 */
export function continuedFlags(recorded: string | undefined, own: Flags, isFiltered: boolean): Flags {
  const ofRun = recorded === undefined ? {} : runFlagsOf(JSON.parse(recorded) as Flags);
  const kept = Object.entries(ofRun).filter(
    ([name, value]) => value !== undefined && (isFiltered || !FILTERS.includes(name)),
  );
  const given = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...RUN_FLAG_DEFAULTS, ...Object.fromEntries([...kept, ...given]) };
}
