/** All resolvers, and which to ask first. */

import type { Work } from "../work.ts";
import { arxiv } from "./arxiv.ts";
import { biorxiv } from "./biorxiv.ts";
import { core } from "./core.ts";
import { crossref } from "./crossref.ts";
import { doaj } from "./doaj.ts";
import { europePmc } from "./europe-pmc.ts";
import { figshare } from "./figshare.ts";
import { hal } from "./hal.ts";
import { landingPage } from "./landing-page.ts";
import { openaire } from "./openaire.ts";
import { openalex } from "./openalex.ts";
import { osf } from "./osf.ts";
import { pmc } from "./pmc.ts";
import type { Resolver } from "./resolver.ts";
import { semanticScholar } from "./semantic-scholar.ts";
import { unpaywall } from "./unpaywall.ts";
import { wayback } from "./wayback.ts";
import { zenodo } from "./zenodo.ts";

/**
 * In the order in which they are asked. Repositories that know only their own works come first: where one of them can be
 * asked at all, it has the file. Then those who know most for one request, then pages, then the archive.
 */
export const RESOLVERS: readonly Resolver[] = [
  arxiv,
  pmc,
  zenodo,
  figshare,
  osf,
  biorxiv,
  openalex,
  unpaywall,
  europePmc,
  crossref,
  semanticScholar,
  doaj,
  hal,
  core,
  openaire,
  landingPage,
  wayback,
];

/**
 * Those of the available resolvers that can be asked about a work, in order. What one finds may be what another needs,
 * so it is called again, with those left that were not asked yet, whenever names were added to the work.
 */
export function orderFor(work: Work, available: readonly Resolver[]): readonly Resolver[] {
  return available
    .filter(resolver => resolver.requestFor(work) !== undefined)
    .toSorted((one, other) => rankOf(one, work) - rankOf(other, work));
}

function rankOf(resolver: Resolver, { ids }: Work): number {
  // By DOI it is one of many indexes, by its own address the repository.
  if (resolver === hal && hal.requestFor({ key: "", ids: { url: ids.url } }) !== undefined) return -1;
  // Without a PMCID it has to convert one first, and the indexes often give one on the way.
  if (resolver === pmc && ids.pmcid === undefined) return RESOLVERS.indexOf(europePmc) + 0.5;
  const rank = RESOLVERS.indexOf(resolver);
  return rank === -1 ? RESOLVERS.length : rank;
}
