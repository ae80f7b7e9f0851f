import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia } from "../catalogue-index.ts";
import {
  decoded,
  json,
  reply,
  type SimulatedReply,
  type SimulatedRequest,
  type SimulatedService,
  xml,
} from "../exchange.ts";
import { jats } from "./pmc.ts";

/** www.ebi.ac.uk/europepmc: search, and the text of open articles as XML. */
export function europePmc(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    const path = request.path.replace(/^\/europepmc\/webservices\/rest/, "");
    if (path === "/search") return search(catalogue, request);
    const [, pmcid = ""] = /^\/(PMC\d+)\/fullTextXML$/.exec(decoded(path) ?? "") ?? [];
    const work = catalogue.by("pmcid", pmcid);
    if (work === undefined || copiesVia(work, "europe_pmc").length === 0) return errorBean(404, "No full text found");
    return reply(jats(work), "application/xml", 200, {});
  };
}

function errorBean(status: number, message: string): SimulatedReply {
  return xml(`<errorBean><errCode>${status}</errCode><errMsg>${message}</errMsg></errorBean>`, status);
}

function search(catalogue: CatalogueIndex, { query }: SimulatedRequest): SimulatedReply {
  const search = query.get("query");
  if (search === null || search === "") return errorBean(400, "The query parameter is missing");
  const names = [...search.matchAll(/\b(?:DOI|EXT_ID|PMCID|PMC_ID)\s*:\s*"?([^"\s)]+(?:\)[^"\s)]+)*)"?/gi)].map(
    ([, name = ""]) => name,
  );
  const pageSize = Number(query.get("pageSize") ?? 25);
  const result = [...new Set(names)]
    .flatMap(
      name => catalogue.byDoi(name) ?? catalogue.by("pmid", name) ?? catalogue.by("pmcid", name.toUpperCase()) ?? [],
    )
    .filter(({ ids }) => ids.pmid !== undefined)
    .slice(0, pageSize)
    .map(work => record(work, query.get("resultType") === "core"));
  return json({
    version: "6.9",
    hitCount: result.length,
    request: {
      queryString: search,
      resultType: query.get("resultType") ?? "lite",
      cursorMark: "*",
      pageSize,
      sort: "",
      synonym: false,
    },
    resultList: { result },
  });
}

function record(work: SimulatedWork, isCore: boolean) {
  const { ids, title, year, authors } = work;
  const copies = copiesVia(work, "europe_pmc");
  const isOpen = copies.length > 0;
  const urls = copies.map(({ url }) => ({
    availability: "Open access",
    availabilityCode: "OA",
    documentStyle: "pdf",
    site: url.startsWith("https://europepmc.org/") ? "Europe_PMC" : "Unpaywall",
    url,
  }));
  const doi = {
    availability: "Subscription required",
    availabilityCode: "S",
    documentStyle: "doi",
    site: "DOI",
    url: `https://doi.org/${ids.doi}`,
  };
  return {
    id: ids.pmid,
    source: "MED",
    pmid: ids.pmid,
    pmcid: ids.pmcid,
    doi: ids.doi,
    title: `${title}.`,
    authorString: authors.join(", "),
    pubYear: String(year),
    isOpenAccess: isOpen ? "Y" : "N",
    inEPMC: isOpen ? "Y" : "N",
    inPMC: "Y",
    hasPDF: isOpen ? "Y" : "N",
    ...(isCore ? { fullTextUrlList: { fullTextUrl: [...urls, doi] }, license: isOpen ? "cc by" : undefined } : {}),
  };
}
