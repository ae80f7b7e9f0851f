/** All resolvers and their order. */

import type { Environment } from "../../policy/environment.ts";
import type { Work } from "../work.ts";
import { arxiv } from "./arxiv.ts";
import { biorxiv } from "./biorxiv.ts";
import { core } from "./core.ts";
import { crossref } from "./crossref.ts";
import { datacite } from "./datacite.ts";
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
 * In the order in which they are queried. Repositories with only their own works come first: if the identifier is theirs,
 * they have the file. Then the indexes that answer about many works in one request, then those that answer about one, then
 * landing pages, then the archive.
 */
export const RESOLVERS: readonly Resolver[] = [
  arxiv,
  pmc,
  zenodo,
  figshare,
  osf,
  biorxiv,
  openalex,
  europePmc,
  semanticScholar,
  crossref,
  datacite,
  unpaywall,
  doaj,
  hal,
  core,
  openaire,
  landingPage,
  wayback,
];

/**
 * The variables that a resolver needs and that have no value. A `mailto` replaces DOCSTOKG_MAILTO; if it is empty, no
 * address is sent.
 */
export function missingVariables(
  { needs }: Resolver,
  { env, mailto }: { readonly env: Environment; readonly mailto: string | undefined },
): readonly string[] {
  return needs.filter(name => !(name === "DOCSTOKG_MAILTO" ? (mailto ?? env[name]) : env[name]));
}

/**
 * The resolvers that can be queried about a work, in order. Called again when a work gets further identifiers, which may
 * enable further resolvers.
 */
export function orderFor(work: Work, available: readonly Resolver[]): readonly Resolver[] {
  return available
    .filter(resolver => resolver.requestFor(work) !== undefined)
    .toSorted((one, other) => rankOf(one, work) - rankOf(other, work));
}

function rankOf(resolver: Resolver, { ids }: Work): number {
  // For a URL of HAL, hal is the repository of the work; for a DOI it is one of many indexes.
  if (resolver === hal && hal.requestFor({ key: "", ids: { url: ids.url } }) !== undefined) return -1;
  // Without a PMCID, pmc needs an extra request to convert the id; the indexes often return a PMCID.
  if (resolver === pmc && ids.pmcid === undefined) return RESOLVERS.indexOf(europePmc) + 0.5;
  const rank = RESOLVERS.indexOf(resolver);
  return rank === -1 ? RESOLVERS.length : rank;
}
