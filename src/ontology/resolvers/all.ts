import type { OntologyResolver } from "../resolver.ts";
import { bioportal } from "./bioportal.ts";
import { bioregistry } from "./bioregistry.ts";
import { direct, skos } from "./direct.ts";
import { lov } from "./lov.ts";
import { obo } from "./obo.ts";
import { ols } from "./ols.ts";

/** By the names that `sources.yaml` uses. */
export const RESOLVERS: ReadonlyMap<string, OntologyResolver> = new Map(
  [obo, ols, bioportal, bioregistry, lov, direct, skos].map(resolver => [resolver.name, resolver]),
);

/** Whose limits there are: the first halves of the keys `service:host`. */
export const SERVICES: readonly string[] = [...new Set([...RESOLVERS.values()].map(({ service }) => service))];
