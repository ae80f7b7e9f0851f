import { formatOfName } from "../format.ts";
import { baseOf, readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, refused } from "../resolver.ts";

const BASE = "https://www.ebi.ac.uk/ols4";

/** The Ontology Lookup Service returns the URL of an ontology; it does not serve the file. */
export const ols: OntologyResolver = {
  name: "ols",
  service: "ols",
  extras: {
    ontology: "name at OLS, if it differs from the id",
    base: "URL of another OLS, such as https://service.tib.eu/ts4tib",
  },
  requires: [],
  requestFor: ({ id, extras }) => ({
    url: `${baseOf(extras, BASE)}/api/ontologies/${encodeURIComponent((extras["ontology"] ?? id).toLowerCase())}`,
    accept: JSON_ONLY,
  }),
  read({ id, targetFormats }, response) {
    const json = readJson("OLS", response);
    if (!("value" in json)) return json;
    const licence = ["config", "annotations", "license"];
    const location = valueAt(json.value, "config", "fileLocation");
    if (typeof location !== "string" || location === "")
      return refused("no-file", `OLS gives no file location for ${id}`);
    const url = webUrlWithoutCredentials(location);
    if (url === undefined) {
      const scheme = /^[a-z][a-z0-9+.-]*:/i.exec(location)?.[0] ?? "no scheme";
      return refused("not-public", `the file location of ${id} in OLS is not public (${scheme})`);
    }
    const format = formatOfName(new URL(url).pathname);
    if (format !== undefined && targetFormats.length > 0 && !targetFormats.includes(format)) {
      return refused("no-format", `${id} is available as ${format} in OLS, wanted ${targetFormats.join(", ")}`);
    }
    return found({
      url,
      format,
      version: textAt(json.value, "version") ?? textAt(json.value, "config", "versionIri"),
      // Every annotation is a list of texts.
      licence: textAt(json.value, ...licence, "0") ?? textAt(json.value, ...licence),
      notes: textAt(json.value, "status") === "FAILED" ? ["OLS failed to load this ontology"] : [],
    });
  },
};
