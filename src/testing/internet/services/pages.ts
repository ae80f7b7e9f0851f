import type { CatalogueIndex } from "../catalogue-index.ts";
import { html, type SimulatedReply, type SimulatedService, text } from "../exchange.ts";
import { pageReply } from "../page.ts";

/** Every host that is no API: whatever the catalogue has put at the address. */
export function pages(catalogue: CatalogueIndex): SimulatedService {
  return visit => {
    if (visit.path === "/robots.txt") return robots(visit.host);
    const page = catalogue.pages.get(`${visit.host}${visit.path}${visit.search}`);
    return page === undefined ? html("Page not found", "<h1>Page not found</h1>", 404) : pageReply(visit, page);
  };
}

function robots(host: string): SimulatedReply {
  const delayS = /^www\.(?:bio|med)rxiv\.org$/.test(host) ? 7 : 1;
  return text(`User-agent: *\nCrawl-delay: ${delayS}\nDisallow: /search\n`);
}
