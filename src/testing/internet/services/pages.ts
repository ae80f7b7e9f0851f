import type { CatalogueIndex } from "../catalogue-index.ts";
import { html, type SimulatedReply, type SimulatedService, text } from "../exchange.ts";
import { pageReply } from "../page.ts";

/** Hosts without an API: returns the page of the catalogue at the URL. */
export function pages(catalogue: CatalogueIndex): SimulatedService {
  return request => {
    if (request.path === "/robots.txt") return robots(request.host);
    const page = catalogue.pages.get(`${request.host}${request.path}${request.search}`);
    return page === undefined ? html("Page not found", "<h1>Page not found</h1>", 404) : pageReply(request, page);
  };
}

function robots(host: string): SimulatedReply {
  const delayS = /^www\.(?:bio|med)rxiv\.org$/.test(host) ? 7 : 1;
  return text(`User-agent: *\nCrawl-delay: ${delayS}\nDisallow: /search\n`);
}
