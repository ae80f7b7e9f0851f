import type { TargetFormat } from "../format.ts";
import {
  chooseOffer,
  found,
  JSON_ONLY,
  type OntologyResolver,
  readJson,
  refused,
  textAt,
  valueAt,
  webUrlWithoutCredentials,
} from "../resolver.ts";

const API = "https://bioregistry.io/api/registry/";
const FIELDS: Readonly<Record<string, TargetFormat>> = {
  download_owl: "owl",
  download_obo: "obo",
  download_json: "json",
  download_rdf: "ttl",
};

/** The Bioregistry: where files of a prefix lie, in which formats. */
export const bioregistry: OntologyResolver = {
  name: "bioregistry",
  service: "bioregistry",
  extras: { prefix: "its prefix there, where that is not the id" },
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
    if (offers.length === 0) return refused("no-file", `the Bioregistry has no file of ${id}`);
    const offer = chooseOffer(offers, targetFormats);
    if (offer === undefined) {
      const formats = offers.map(({ format }) => format).join(", ");
      return refused("no-format", `the Bioregistry has ${id} as ${formats}, and ${targetFormats.join(", ")} is wanted`);
    }
    return found({
      ...offer,
      version: textAt(json.value, "version"),
      licence: textAt(json.value, "license"),
      notes: valueAt(json.value, "deprecated") === true ? ["the Bioregistry calls it deprecated"] : [],
    });
  },
};
