import type { TargetFormat } from "../format.ts";
import { readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { chooseOffer, found, JSON_ONLY, type OntologyResolver, refused } from "../resolver.ts";

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
  requestFor: ({ id, extras }) => ({
    url: `${API}${encodeURIComponent(extras["prefix"] ?? id)}?format=json`,
    accept: JSON_ONLY,
  }),
  read({ id, targetFormats }, response) {
    const json = readJson("the Bioregistry", response);
    if (!("value" in json)) return json;
    const offers = Object.entries(FIELDS).flatMap(([field, format]) => {
      const url = webUrlWithoutCredentials(valueAt(json.value, field));
      return url === undefined ? [] : [{ url, format }];
    });
    if (offers.length === 0) return refused("no-file", `no file of ${id} at the Bioregistry`);
    const offer = chooseOffer(offers, targetFormats);
    if (offer === undefined) {
      const formats = offers.map(({ format }) => format).join(", ");
      return refused(
        "no-format",
        `${id} is available as ${formats} at the Bioregistry, wanted ${targetFormats.join(", ")}`,
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
