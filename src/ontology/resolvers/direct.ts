import { quote } from "../../core/text/quote.ts";
import { formatOfName } from "../format.ts";
import { webUrlWithoutCredentials } from "../registry-json.ts";
import { found, type OntologyFinding, type OntologyResolver, refused, type Source } from "../resolver.ts";

/** Many namespace URLs return HTML to a request that accepts any format. */
const RDF_FIRST = "text/turtle, application/rdf+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1";

/** A URL from `sources.yaml`; no service is asked. */
export const direct: OntologyResolver = {
  name: "direct",
  service: "direct",
  extras: {
    url: "URL of the file",
    version: "version label, if the file has none",
  },
  requires: ["url"],
  requestFor: () => undefined,
  read: fromUrl,
};

/** The same for vocabularies whose namespace URL negotiates the format. */
export const skos: OntologyResolver = { ...direct, name: "skos", accept: RDF_FIRST };

/** The same for XBRL taxonomies, which are published as packages: zip files that are used as a whole. */
export const xbrl: OntologyResolver = { ...direct, name: "xbrl", formats: ["zip"] };

function fromUrl({ extras, version }: Source): OntologyFinding {
  const template = extras["url"] ?? "";
  const isTemplate = template.includes("{version}");
  if (isTemplate && version === undefined) {
    return refused("no-file", "extras.url contains {version}, but the source has no version (version in sources.yaml)");
  }
  const url = webUrlWithoutCredentials(template.replaceAll("{version}", encodeURIComponent(version ?? "")));
  if (url === undefined) return refused("not-public", `${quote(template)} is not an http or https URL (extras.url)`);
  return found({
    url,
    format: formatOfName(new URL(url).pathname),
    version: extras["version"] ?? (isTemplate ? version : undefined),
  });
}
