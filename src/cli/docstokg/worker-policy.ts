import type { PolicyOptions } from "../../http/hub-options.ts";
import type { Environment } from "../../policy/environment.ts";
import { readFileLayer } from "../../policy/file-layer.ts";
import { assemble, objectLayer, type SectionName } from "../../policy/layer.ts";
import { loadPolicy } from "../../policy/load.ts";
import { mergeLayers } from "../../policy/merge-layers.ts";
import type { SharedSettings } from "./shared-settings.ts";

const FILE_VARIABLES: Readonly<Record<SectionName, string>> = {
  ratelimits: "DOCSTOKG_RLIMITS_YAML",
  breakers: "DOCSTOKG_BREAKERS_YAML",
};

/**
 * The policy that a worker reloads: that of its run, and over it, field by field, the files that the worker's own
 * variables name. Without such a file it is the policy of the run.
 * @throws ConfigError that names file and line
 */
export async function reloadedPolicy(ofRun: SharedSettings["policy"], env: Environment): Promise<PolicyOptions> {
  return {
    ratelimits: await withOwnFile("ratelimits", ofRun.ratelimits, env),
    breakers: await withOwnFile("breakers", ofRun.breakers, env),
  };
}

async function withOwnFile<Section extends SectionName>(
  section: Section,
  ofRun: SharedSettings["policy"][Section],
  env: Environment,
): Promise<SharedSettings["policy"][Section]> {
  const file = env[FILE_VARIABLES[section]] || undefined;
  if (file === undefined) return ofRun;
  // Checked by itself, because the merged values have lost their lines.
  await loadPolicy({ [section]: file });
  const { assignments } = await readFileLayer(file);
  // The policy of the run is complete, whatever the file extends.
  const own = assignments.filter(({ path }) => path[0] !== "extends");
  return assemble(mergeLayers([objectLayer(ofRun, section).assignments, own])) as SharedSettings["policy"][Section];
}
