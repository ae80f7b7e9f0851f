import type { TargetFormat } from "../format.ts";
import { readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { chooseOffer, found, JSON_ONLY, type OntologyResolver, refused, type Source } from "../resolver.ts";

const API = "https://bioregistry.io/api/registry/";
const FIELDS: Readonly<Record<string, TargetFormat>> = {
  download_owl: "owl",
  download_obo: "obo",
  download_json: "json",
  download_rdf: "ttl",
};

/** The Bioregistry returns the URLs of a prefix's files by format. */
export const bioregistry: OntologyResolver = {
  name: "bioregistry",
  service: "bioregistry",
  extras: { prefix: "prefix at the Bioregistry, if it differs from the id" },
  requires: [],
  requestFor: source => ({ url: `${API}${encodeURIComponent(prefixOf(source))}?format=json`, accept: JSON_ONLY }),
  read(source, response) {
    const prefix = prefixOf(source);
    const { targetFormats } = source;
    const json = readJson("the Bioregistry", response);
    if (!("value" in json)) return json;
    const offers = Object.entries(FIELDS).flatMap(([field, format]) => {
      const url = webUrlWithoutCredentials(valueAt(json.value, field));
      return url === undefined ? [] : [{ url, format }];
    });
    if (offers.length === 0) return refused("no-file", `the Bioregistry lists no file for the prefix ${prefix}`);
    const offer = chooseOffer(offers, targetFormats);
    if (offer === undefined) {
      const formats = offers.map(({ format }) => format).join(", ");
      return refused(
        "no-format",
        `the Bioregistry lists ${formats} for the prefix ${prefix}, wanted ${targetFormats.join(", ")}`,
      );
    }
    return found({
      ...offer,
      version: textAt(json.value, "version"),
      licence: textAt(json.value, "license"),
      notes: valueAt(json.value, "deprecated") === true ? ["deprecated according to the Bioregistry"] : [],
    });
  },
};

function prefixOf({ id, extras }: Source): string {
  return extras["prefix"] ?? id;
}
