import { formatOfName } from "../format.ts";
import {
  found,
  type OntologyFinding,
  type OntologyResolver,
  refused,
  type Source,
  webUrlWithoutCredentials,
} from "../resolver.ts";

/** Many namespaces answer HTML to those who take anything. */
const RDF_FIRST = "text/turtle, application/rdf+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1";

/** A URL that somebody knows. */
export const direct: OntologyResolver = {
  name: "direct",
  service: "direct",
  extras: { url: "where the file lies", version: "what to call it, where the file does not say" },
  requires: ["url"],
  requestFor: () => undefined,
  read: fromUrl,
};

/** The same for vocabularies that negotiate: the address of the namespace will do. */
export const skos: OntologyResolver = { ...direct, name: "skos", accept: RDF_FIRST };

function fromUrl({ extras }: Source): OntologyFinding {
  const url = webUrlWithoutCredentials(extras["url"]);
  if (url === undefined) return refused("not-public", "extras.url is no http or https address");
  return found({ url, format: formatOfName(new URL(url).pathname), version: extras["version"] });
}
