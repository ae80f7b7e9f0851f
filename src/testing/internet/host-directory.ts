/** The services of the simulated internet by host and path, and the names of all its hosts. */
import { makeCatalogue, type SimulatedWork } from "./catalogue.ts";
import { CatalogueIndex } from "./catalogue-index.ts";
import { type SimulatedReply, type SimulatedRequest, type SimulatedService, text } from "./exchange.ts";
import { matchesHostPath } from "./limit-enforcer.ts";
import { makeOntologyCatalogue, type OntologyCatalogue, type SimulatedOntology } from "./ontology-catalogue.ts";
import { arxiv } from "./services/arxiv.ts";
import { bioportal } from "./services/bioportal.ts";
import { biorxiv } from "./services/biorxiv.ts";
import { core } from "./services/core.ts";
import { crossref, doiOrg } from "./services/crossref.ts";
import { datacite } from "./services/datacite.ts";
import { doaj } from "./services/doaj.ts";
import { europePmc } from "./services/europe-pmc.ts";
import { figshare } from "./services/figshare.ts";
import { hal } from "./services/hal.ts";
import { ontologyFiles } from "./services/ontology-files.ts";
import { bioregistry, lov, oboFoundry, ols } from "./services/ontology-registries.ts";
import { openaire } from "./services/openaire.ts";
import { openalex, openalexContent } from "./services/openalex.ts";
import { osf } from "./services/osf.ts";
import { pages } from "./services/pages.ts";
import { eutils, pmcFiles, pmcTools } from "./services/pmc.ts";
import { semanticScholar } from "./services/semantic-scholar.ts";
import { unpaywall } from "./services/unpaywall.ts";
import { availability, wayback } from "./services/wayback.ts";
import { zenodo } from "./services/zenodo.ts";
import { PAGE_HOSTS } from "./work-scenarios.ts";

export interface HostDirectoryOptions {
  readonly seed: number;
  readonly works: number;
  readonly bigOntologyBytes: number;
}

export interface HostDirectory {
  readonly hosts: readonly string[];
  readonly works: readonly SimulatedWork[];
  readonly ontologies: readonly SimulatedOntology[];
  knows(host: string): boolean;
  answer(request: SimulatedRequest): SimulatedReply;
}

export function makeHostDirectory({ seed, works, bigOntologyBytes }: HostDirectoryOptions): HostDirectory {
  const catalogue = new CatalogueIndex(makeCatalogue(seed, works));
  const ontologyCatalogue = makeOntologyCatalogue(seed, bigOntologyBytes);
  // The longest pattern first, so that a path of a host takes precedence over the host.
  const services = [...servicesOf(catalogue), ...ontologyServicesOf(ontologyCatalogue)].sort(
    ([one], [other]) => other.length - one.length,
  );
  const hosts = [...new Set(services.map(([pattern]) => pattern.split("/")[0] ?? pattern))].sort();
  const hostNames = new Set(hosts);
  return {
    hosts,
    works: catalogue.works,
    ontologies: ontologyCatalogue.ontologies,
    knows: host => hostNames.has(host),
    answer: request => {
      const [, service] = services.find(([pattern]) => matchesHostPath(pattern, request)) ?? [];
      return service === undefined ? text("no such service\n", 404) : service(request);
    },
  };
}

function servicesOf(catalogue: CatalogueIndex): [pattern: string, service: SimulatedService][] {
  const pageService = pages(catalogue);
  const arxivService = arxiv(catalogue);
  const doiService = doiOrg(catalogue);
  return [
    ["api.crossref.org", crossref(catalogue)],
    ["doi.org", doiService],
    ["dx.doi.org", doiService],
    ["www.doi.org", doiService],
    ["api.openalex.org", openalex(catalogue)],
    ["content.openalex.org", openalexContent(catalogue)],
    ["api.unpaywall.org", unpaywall(catalogue)],
    ["export.arxiv.org", arxivService],
    ["arxiv.org", arxivService],
    ["www.arxiv.org", arxivService],
    ["pmc.ncbi.nlm.nih.gov", pmcTools(catalogue)],
    ["eutils.ncbi.nlm.nih.gov", eutils(catalogue)],
    ["pmc-oa-opendata.s3.amazonaws.com", pmcFiles(catalogue)],
    ["www.ebi.ac.uk/europepmc", europePmc(catalogue)],
    ["api.semanticscholar.org", semanticScholar(catalogue)],
    ["doaj.org", doaj(catalogue)],
    ["zenodo.org", zenodo(catalogue)],
    ["api.figshare.com", figshare(catalogue)],
    ["api.osf.io", osf(catalogue)],
    ["api.core.ac.uk", core(catalogue)],
    ["api.openaire.eu", openaire(catalogue)],
    ["api.archives-ouvertes.fr", hal(catalogue)],
    ["api.biorxiv.org", biorxiv(catalogue)],
    ["api.medrxiv.org", biorxiv(catalogue)],
    ["api.datacite.org", datacite(catalogue)],
    ["web.archive.org", wayback(catalogue)],
    ["archive.org", availability(catalogue)],
    ...[...PAGE_HOSTS, ...REPOSITORY_FILE_HOSTS].map((host): [string, SimulatedService] => [host, pageService]),
  ];
}

function ontologyServicesOf(catalogue: OntologyCatalogue): [pattern: string, service: SimulatedService][] {
  const fileService = ontologyFiles(catalogue);
  return [
    ["obofoundry.org", oboFoundry(catalogue)],
    ["www.ebi.ac.uk/ols4", ols(catalogue)],
    ["data.bioontology.org", bioportal(catalogue)],
    ["bioregistry.io", bioregistry(catalogue)],
    ["lov.linkeddata.es", lov(catalogue)],
    ...ONTOLOGY_FILE_HOSTS.map((host): [string, SimulatedService] => [host, fileService]),
  ];
}

/** Hosts that serve ontology files, or redirect to them. */
const ONTOLOGY_FILE_HOSTS = [
  "purl.obolibrary.org",
  "current.geneontology.org",
  "github.com",
  "release-assets.githubusercontent.com",
  "raw.githubusercontent.com",
  "ftp.ebi.ac.uk",
  "files.ontologies.example",
];

/** Hosts that serve pages and files of repositories. */
const REPOSITORY_FILE_HOSTS = [
  "europepmc.org",
  "figshare.com",
  "s3-eu-west-1.amazonaws.com",
  "osf.io",
  "files.us.osf.io",
  "www.biorxiv.org",
  "www.medrxiv.org",
  "hal.science",
  "core.ac.uk",
];
