import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { candidatesByName } from "./file-names.ts";
import { figshareFile, findingForStatus, findingOf, idsFrom, md5Checksum } from "./finding.ts";
import { lenientText, listOf, optionalText, readJson } from "./json-response.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Resolver, ResolverRequest } from "./resolver.ts";

const API = "https://api.figshare.com/v2/articles";

const file = z.object({
  id: z.number().int(),
  name: z.string(),
  size: z.number().nullish(),
  is_link_only: z.boolean().nullish(),
  supplied_md5: optionalText,
  computed_md5: optionalText,
});
const article = z.object({
  doi: optionalText,
  title: lenientText,
  published_date: lenientText,
  license: z.object({ name: lenientText }).nullish().catch(undefined),
  files: listOf(file),
});
/** A search by DOI returns a list, a request by id returns the article. */
const responseSchema = z.union([z.array(z.object({ id: z.number().int() })).max(1000), article]);

export const figshare: Resolver = {
  name: "figshare",
  needs: [],
  isRepository: true,
  requestFor({ ids }) {
    const id = articleOf(ids);
    if (id !== undefined) return articleAt(id);
    return ids.doi?.startsWith("10.6084/") ? { url: urlWithQuery(API, { doi: ids.doi }), role: "metadata" } : undefined;
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, responseSchema);
    if ("failure" in parsed) return parsed.failure;
    const { data } = parsed;
    if (Array.isArray(data)) {
      const [first] = data;
      return first === undefined
        ? { kind: "none", reason: "unknown-work" }
        : { kind: "follow-up", request: articleAt(String(first.id)) };
    }
    const files = data.files
      .filter(({ is_link_only }) => is_link_only !== true)
      .map(({ id, name, size, computed_md5, supplied_md5 }) => ({
        name,
        url: figshareFile(id),
        licence: data.license?.name,
        checksum: md5Checksum(computed_md5) ?? md5Checksum(supplied_md5),
        bytes: size ?? undefined,
      }));
    return findingOf(work, candidatesByName(files), {
      noneReason: "no-copy",
      ids: idsFrom({ doi: data.doi?.replace(/\.v\d+$/, "") }),
      metadata: { title: data.title, year: data.published_date },
    });
  },
};

function articleAt(id: string): ResolverRequest {
  return { url: `${API}/${id}`, role: "metadata" };
}

/** The id at the end of a DOI (`10.6084/m9.figshare.123.v2`) or URL (`…/articles/preprint/Some_title/123/2`). */
function articleOf({ doi, url }: WorkIds): string | undefined {
  const [, id, version] =
    /^10\.\d+\/m9\.figshare\.(?:c\.)?(\d{1,12})(?:\.v(\d{1,4}))?$/.exec(doi ?? "") ??
    /^https?:\/\/(?:[\w-]+\.)*figshare\.com\/articles\/(?:[^/?#]+\/){0,2}(\d{1,12})(?:\/(\d{1,4}))?\/?(?:\?|$)/.exec(
      url ?? "",
    ) ??
    [];
  return id === undefined || doi?.includes(".figshare.c.")
    ? undefined
    : version === undefined
      ? id
      : `${id}/versions/${version}`;
}
