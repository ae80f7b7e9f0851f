import { z } from "zod";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { kindByUrl } from "../identifiers/web-url.ts";
import { findingForStatus, findingOf, idsFrom } from "./finding.ts";
import { lenientText, lenientYear, optionalListOf, readJson } from "./json-response.ts";
import { encodedPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const creator = z.object({ name: lenientText, familyName: lenientText, givenName: lenientText });
const publisher = z.union([z.string(), z.object({ name: lenientText })]);

const record = z.object({
  data: z.object({
    attributes: z.object({
      doi: z.string(),
      titles: optionalListOf(z.object({ title: lenientText })).catch([]),
      creators: optionalListOf(creator).catch([]),
      publicationYear: lenientYear,
      publisher: publisher.nullish().catch(undefined),
      types: z.object({ resourceTypeGeneral: lenientText }).nullish().catch(undefined),
      rightsList: optionalListOf(z.object({ rightsIdentifier: lenientText, rightsUri: lenientText })).catch([]),
      contentUrl: z
        .union([z.string().transform(one => [one]), z.array(z.string())])
        .nullish()
        .catch(undefined),
    }),
  }),
});

/**
 * DOIs of repositories, data centres and arXiv. Its landing page is no candidate: the resolver `landing_page` requests it
 * through doi.org.
 */
export const datacite: Resolver = {
  name: "datacite",
  needs: [],
  requestFor({ ids, metadata }) {
    const doi = ids.doi ?? (ids.arxiv && doiOfArxivId(ids.arxiv));
    if (doi === undefined || metadata?.registrar === "crossref") return undefined;
    return { url: `https://api.datacite.org/dois/${encodedPath(doi)}`, role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, record);
    if ("failure" in parsed) return parsed.failure;
    const { attributes } = parsed.data.data;
    const [rights] = attributes.rightsList;
    const licence = rights?.rightsIdentifier ?? rights?.rightsUri;
    const rawCandidates = (attributes.contentUrl ?? []).map(url => ({ url, kind: kindByUrl(url), licence }));
    return findingOf(work, rawCandidates, {
      noneReason: "no-copy",
      ids: idsFrom({ doi: attributes.doi }),
      metadata: {
        title: attributes.titles[0]?.title,
        year: attributes.publicationYear,
        authors: attributes.creators.map(({ name, familyName, givenName }) => ({
          name,
          family: familyName,
          given: givenName,
        })),
        publisher: typeof attributes.publisher === "string" ? attributes.publisher : attributes.publisher?.name,
        type: attributes.types?.resourceTypeGeneral,
        licence,
        registrar: "datacite",
      },
    });
  },
};
