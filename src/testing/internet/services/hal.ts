import type { SimulatedWork } from "../catalogue.ts";
import { type CatalogueIndex, copiesVia, isKnownTo } from "../catalogue-index.ts";
import { json, type SimulatedService } from "../exchange.ts";

/** api.archives-ouvertes.fr: Solr, which returns the fields named in `fl`. */
export function hal(catalogue: CatalogueIndex): SimulatedService {
  return ({ path, query }) => {
    if (path.replace(/\/$/, "") !== "/search") return json({ error: { msg: "unknown path", code: 404 } }, 404);
    const dois = [...(query.get("q") ?? "").matchAll(/doiId_s:"?([^"\s)]+)"?/g)].map(([, doi = ""]) => doi);
    const found = dois.flatMap(doi => catalogue.byDoi(doi) ?? []).filter(work => isKnownTo(work, "hal"));
    const fields = query.get("fl")?.split(",") ?? ["docid", "uri_s"];
    const docs = found.map(work =>
      Object.fromEntries(Object.entries(doc(work)).filter(([name]) => fields.includes(name))),
    );
    return json({ response: { numFound: docs.length, start: 0, maxScore: 1, numFoundExact: true, docs } });
  };
}

function doc(work: SimulatedWork) {
  const [copy] = copiesVia(work, "hal");
  const halId = new URL(copy?.url ?? "https://hal.science/").pathname.split("/")[1];
  return {
    docid: String(work.record),
    halId_s: halId,
    uri_s: `https://hal.science/${halId}v1`,
    doiId_s: work.ids.doi,
    title_s: [work.title],
    openAccess_bool: true,
    licence_s: "https://creativecommons.org/licenses/by/4.0/",
    fileMain_s: copy?.url,
    files_s: [copy?.url],
  };
}
