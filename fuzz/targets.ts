import type { FuzzTarget } from "./target.ts";
import { archiveTargets } from "./targets/archives.ts";
import { harvestTargets } from "./targets/harvest.ts";
import { headerTargets } from "./targets/headers.ts";
import { ontologyTargets } from "./targets/ontology.ts";
import { policyTargets } from "./targets/policy.ts";

/** Every parser of text that comes from users, servers and files. */
export const TARGETS: readonly FuzzTarget[] = [
  ...headerTargets,
  ...policyTargets,
  ...harvestTargets,
  ...ontologyTargets,
  ...archiveTargets,
];
