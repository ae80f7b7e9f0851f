import { formatOfName } from "../format.ts";
import { listAt, readJson, textAt, valueAt, webUrlWithoutCredentials } from "../registry-json.ts";
import { found, JSON_ONLY, type OntologyResolver, refused, type Source } from "../resolver.ts";
import { labelOf } from "../version-label.ts";

const API = "https://lov.linkeddata.es/dataset/lov/api/v2/vocabulary/info";

interface LovVersion {
  readonly url: string;
  readonly name: string | undefined;
  readonly issued: string | undefined;
}

/** Linked Open Vocabularies lists versions of a vocabulary, newest first; not every version has a file. */
export const lov: OntologyResolver = {
  name: "lov",
  service: "lov",
  extras: { vocab: "prefix at LOV, if it differs from the id" },
  requires: [],
  requestFor: request,
  versions: {
    requestFor: request,
    read(_source, response) {
      const json = readJson("LOV", response);
      if (!("value" in json)) return json;
      return versionsIn(json.value).map(version => ({ version: labelOfVersion(version) ?? "?", url: version.url }));
    },
  },
  read(source, response) {
    const { version } = source;
    const json = readJson("LOV", response);
    if (!("value" in json)) return json;
    const versions = versionsIn(json.value);
    const [newest] = versions;
    if (newest === undefined) return refused("no-file", `LOV lists no file for the prefix ${vocabOf(source)}`);
    const chosen =
      version === undefined
        ? newest
        : versions.find(({ name, issued }) => [name, issued].some(text => text && labelOf(text) === labelOf(version)));
    if (chosen === undefined)
      return refused("no-file", `LOV lists no version ${version} for the prefix ${vocabOf(source)}`);
    return found({
      url: chosen.url,
      format: formatOfName(new URL(chosen.url).pathname),
      version: labelOfVersion(chosen),
    });
  },
};

function request(source: Source) {
  return { url: `${API}?vocab=${encodeURIComponent(vocabOf(source))}`, accept: JSON_ONLY };
}

function vocabOf({ id, extras }: Source): string {
  return extras["vocab"] ?? id;
}

function versionsIn(value: unknown): readonly LovVersion[] {
  return listAt(value, "versions").flatMap(version => {
    const url = webUrlWithoutCredentials(valueAt(version, "fileURL"));
    return url === undefined ? [] : [{ url, name: textAt(version, "name"), issued: textAt(version, "issued") }];
  });
}

function labelOfVersion({ name, issued }: LovVersion): string | undefined {
  return name ?? issued?.slice(0, 10);
}
