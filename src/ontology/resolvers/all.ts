import type { OntologyResolver } from "../resolver.ts";
import { bioportal } from "./bioportal.ts";
import { bioregistry } from "./bioregistry.ts";
import { direct, skos, xbrl } from "./direct.ts";
import { lov } from "./lov.ts";
import { obo } from "./obo.ts";
import { ols } from "./ols.ts";

/** The resolvers by their names in `sources.yaml`. */
export const RESOLVERS: ReadonlyMap<string, OntologyResolver> = new Map(
  [obo, ols, bioportal, bioregistry, lov, direct, skos, xbrl].map(resolver => [resolver.name, resolver]),
);

/** The services that have rate limits: the part before the colon in the keys `service:host`. */
export const SERVICES: readonly string[] = [...new Set([...RESOLVERS.values()].map(({ service }) => service))];
