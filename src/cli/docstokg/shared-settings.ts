/**
 * The settings of a run that its workers on other machines need, as they are stored in the manifest: the flags that
 * belong to the run, and the effective policy. The address of the shared store and the API keys belong to each machine,
 * so they are not in the manifest.
 */
import { ConfigError } from "../../errors.ts";
import type { PolicyOptions } from "../../http/hub-options.ts";
import type { LoadedPolicy } from "../../policy/load.ts";
import { storeNamesOf } from "../../stores/open-store.ts";
import { isPostgresUrl } from "../../stores/postgres/postgres-store-url.ts";
import type { Flags, Io } from "../program.ts";
import type { RunPaths } from "./path-flags.ts";
import { runFlagsOf } from "./run-flags.ts";

const VERSION = 1;

export interface SharedSettings {
  readonly flags: Flags;
  readonly policy: Required<Pick<PolicyOptions, "ratelimits" | "breakers">>;
}

/**
 * The settings for workers. Undefined if no worker can join the run: the manifest is a file, or the limits are in the
 * memory of this process. In the second case, this process and a worker together would exceed the limits.
 */
export function joinableSettings(
  { manifest, folder }: RunPaths,
  flags: Flags,
  policy: LoadedPolicy,
  { env, stderr }: Io,
): string | undefined {
  if (!isPostgresUrl(manifest)) return undefined;
  const isShared = storeNamesOf(undefined, { policy, env }).limits !== "memory";
  if (isShared || flags["enqueueOnly"] === true) return storedSettings(flags, folder, policy);
  stderr.write(
    "The limits of this run are in the memory of this process, so no worker can join it; " +
      "share them (--rate-backend redis, postgres or multiprocess), or use --enqueue-only.\n",
  );
  return undefined;
}

/** @param folder the output folder, which workers must reach under this path, or name themselves with `--out` */
function storedSettings(flags: Flags, folder: string, { ratelimits, breakers }: LoadedPolicy): string {
  const { backend: _, ...limits } = ratelimits.options;
  const { advanced = {}, ...circuits } = breakers.options;
  const { cooldown_store: __, ...others } = advanced;
  return JSON.stringify({
    version: VERSION,
    flags: { ...runFlagsOf(flags), out: folder },
    policy: {
      ratelimits: { ...limits, extends: "none" },
      breakers: { ...circuits, advanced: others, extends: "none" },
    },
  });
}

/** Throws a ConfigError for settings that another version of docstokg has stored. The flags are checked when used. */
export function parseSettings(text: string, run: number): SharedSettings {
  const { version, flags, policy } = JSON.parse(text) as SharedSettings & { readonly version: number };
  if (version === VERSION) return { flags, policy };
  const message = `the settings of run ${run} have version ${version}, but this version of docstokg reads ${VERSION}`;
  throw new ConfigError([{ where: "worker", path: "", message }]);
}
