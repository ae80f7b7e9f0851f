import { html, type Service, text } from "../exchange.ts";
import type { Library } from "../library.ts";
import { pageReply } from "../page.ts";

/** Every host that is no API: whatever the catalogue has put at the address. */
export function pages(library: Library): Service {
  return visit => {
    if (visit.path === "/robots.txt") return text("User-agent: *\nCrawl-delay: 1\nDisallow: /search\n");
    const page = library.pages.get(`${visit.host}${visit.path}${visit.search}`);
    return page === undefined ? html("Page not found", "<h1>Page not found</h1>", 404) : pageReply(visit, page);
  };
}
