/** Who answers where: the services of the simulated internet, and the names of all its hosts. */
import { makeCatalogue, type SimulatedWork } from "./catalogue.ts";
import { Library } from "./catalogue-index.ts";
import { type Reply, type Service, text, type Visit } from "./exchange.ts";
import { isAt } from "./limit-enforcer.ts";
import { makeShelf, type OntologyShelf, type SimulatedOntology } from "./ontology-catalogue.ts";
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

export interface WorldOptions {
  readonly seed: number;
  readonly works: number;
  readonly bigOntologyBytes: number;
}

export interface World {
  readonly hosts: readonly string[];
  readonly works: readonly SimulatedWork[];
  readonly ontologies: readonly SimulatedOntology[];
  knows(host: string): boolean;
  answer(visit: Visit): Reply;
}

export function makeWorld({ seed, works, bigOntologyBytes }: WorldOptions): World {
  const library = new Library(makeCatalogue(seed, works));
  const shelf = makeShelf(seed, bigOntologyBytes);
  // The longer place of a host goes before the shorter.
  const services = [...servicesOf(library), ...ontologyServicesOf(shelf)].sort(
    ([one], [other]) => other.length - one.length,
  );
  const hosts = [...new Set(services.map(([place]) => place.split("/")[0] ?? place))].sort();
  const known = new Set(hosts);
  return {
    hosts,
    works: library.works,
    ontologies: shelf.ontologies,
    knows: host => known.has(host),
    answer: visit => {
      const [, service] = services.find(([place]) => isAt(place, visit)) ?? [];
      return service === undefined ? text("no such service\n", 404) : service(visit);
    },
  };
}

function servicesOf(library: Library): [place: string, service: Service][] {
  const atPages = pages(library);
  const atArxiv = arxiv(library);
  const atDoi = doiOrg(library);
  return [
    ["api.crossref.org", crossref(library)],
    ["doi.org", atDoi],
    ["dx.doi.org", atDoi],
    ["www.doi.org", atDoi],
    ["api.openalex.org", openalex(library)],
    ["content.openalex.org", openalexContent(library)],
    ["api.unpaywall.org", unpaywall(library)],
    ["export.arxiv.org", atArxiv],
    ["arxiv.org", atArxiv],
    ["www.arxiv.org", atArxiv],
    ["pmc.ncbi.nlm.nih.gov", pmcTools(library)],
    ["eutils.ncbi.nlm.nih.gov", eutils(library)],
    ["pmc-oa-opendata.s3.amazonaws.com", pmcFiles(library)],
    ["www.ebi.ac.uk/europepmc", europePmc(library)],
    ["api.semanticscholar.org", semanticScholar(library)],
    ["doaj.org", doaj(library)],
    ["zenodo.org", zenodo(library)],
    ["api.figshare.com", figshare(library)],
    ["api.osf.io", osf(library)],
    ["api.core.ac.uk", core(library)],
    ["api.openaire.eu", openaire(library)],
    ["api.archives-ouvertes.fr", hal(library)],
    ["api.biorxiv.org", biorxiv(library)],
    ["api.medrxiv.org", biorxiv(library)],
    ["api.datacite.org", datacite(library)],
    ["web.archive.org", wayback(library)],
    ["archive.org", availability(library)],
    ...[...PAGE_HOSTS, ...REPOSITORY_FILES].map((host): [string, Service] => [host, atPages]),
  ];
}

function ontologyServicesOf(shelf: OntologyShelf): [place: string, service: Service][] {
  const atFiles = ontologyFiles(shelf);
  return [
    ["obofoundry.org", oboFoundry(shelf)],
    ["www.ebi.ac.uk/ols4", ols(shelf)],
    ["data.bioontology.org", bioportal(shelf)],
    ["bioregistry.io", bioregistry(shelf)],
    ["lov.linkeddata.es", lov(shelf)],
    ...ONTOLOGY_FILES.map((host): [string, Service] => [host, atFiles]),
  ];
}

/** Hosts where ontologies lie, or that lead there. */
const ONTOLOGY_FILES = [
  "purl.obolibrary.org",
  "current.geneontology.org",
  "github.com",
  "release-assets.githubusercontent.com",
  "raw.githubusercontent.com",
  "ftp.ebi.ac.uk",
  "files.ontologies.example",
];

/** Hosts of repositories where their pages and files lie. */
const REPOSITORY_FILES = [
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
