import { formatOfName } from "../format.ts";
import { listAt, readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, refused } from "../resolver.ts";

const API = "https://lov.linkeddata.es/dataset/lov/api/v2/vocabulary/info";

/** Linked Open Vocabularies lists versions of a vocabulary, newest first; not every version has a file. */
export const lov: OntologyResolver = {
  name: "lov",
  service: "lov",
  extras: { vocab: "prefix at LOV, if it differs from the id" },
  requires: [],
  requestFor: ({ id, extras }) => ({
    url: `${API}?vocab=${encodeURIComponent(extras["vocab"] ?? id)}`,
    accept: JSON_ONLY,
  }),
  read({ id }, response) {
    const json = readJson("LOV", response);
    if (!("value" in json)) return json;
    const versions = listAt(json.value, "versions").flatMap(version => {
      const url = webUrlWithoutCredentials(valueAt(version, "fileURL"));
      return url === undefined ? [] : [{ url, name: textAt(version, "name"), issued: textAt(version, "issued") }];
    });
    const [newest] = versions;
    if (newest === undefined) return refused("no-file", `no file of ${id} at LOV`);
    return found({
      url: newest.url,
      format: formatOfName(new URL(newest.url).pathname),
      version: newest.name ?? newest.issued?.slice(0, 10),
    });
  },
};
