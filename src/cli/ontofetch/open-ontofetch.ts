import { Ontofetch, type OntofetchOptions } from "../../ontology/ontofetch.ts";
import type { OntofetchSettings } from "../../ontology/ontofetch-settings.ts";
import { ontologyLimits } from "../../ontology/ontology-hub.ts";
import { printDebugPolicy } from "../docstokg/debug-policy.ts";
import type { Io } from "../program.ts";

/** Opens the fetcher of a command; with NODE_DEBUG=docstokg its effective policy is printed first. */
export async function openOntofetch(
  settings: OntofetchSettings,
  io: Io,
  options: Partial<OntofetchOptions>,
): Promise<Ontofetch> {
  const { env } = io;
  await printDebugPolicy(io, { ratelimits: await ontologyLimits(settings.rates, env), env });
  return Ontofetch.open(settings, { env, ...options });
}
