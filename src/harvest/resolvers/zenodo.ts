import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { candidatesByName } from "./file-names.ts";
import { findingForStatus, findingOf, idsFrom, md5Checksum } from "./finding.ts";
import { lenientText, optionalListOf, optionalText, readJson } from "./json-response.ts";
import type { Resolver, ResolverRequest } from "./resolver.ts";

const record = z.object({
  id: z.union([z.number(), z.string()]),
  doi: optionalText,
  metadata: z.object({
    title: lenientText,
    publication_date: lenientText,
    access_right: lenientText,
    license: z.object({ id: lenientText }).nullish().catch(undefined),
  }),
  files: optionalListOf(z.object({ key: z.string(), size: z.number().nullish(), checksum: optionalText })),
});

/** Only for records of Zenodo: other DOIs would need its search, which is limited to 30 requests per minute. */
export const zenodo: Resolver = {
  name: "zenodo",
  needs: [],
  isRepository: true,
  requestFor({ ids }): ResolverRequest | undefined {
    const id = recordIdOf(ids);
    return id === undefined ? undefined : { url: `https://zenodo.org/api/records/${id}`, role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, record);
    if ("failure" in parsed) return parsed.failure;
    const { id, doi, metadata, files } = parsed.data;
    const isOpen = (metadata.access_right ?? "open") === "open";
    const rawCandidates = candidatesByName(
      files.map(({ key, size, checksum }) => ({
        name: key,
        // The URL in the record does not support ranges; this one does.
        url: /^\d+$/.test(String(id)) ? `https://zenodo.org/records/${id}/files/${encodeURIComponent(key)}` : undefined,
        licence: metadata.license?.id,
        checksum: md5Checksum(checksum),
        bytes: size ?? undefined,
      })),
    );
    return findingOf(work, isOpen ? rawCandidates : [], {
      noneReason: isOpen ? "no-copy" : "not-open",
      ids: idsFrom({ doi }),
      metadata: { title: metadata.title, year: metadata.publication_date },
    });
  },
};

function recordIdOf({ doi, url }: WorkIds): string | undefined {
  return (
    /^10\.5281\/zenodo\.(\d{1,12})$/.exec(doi ?? "")?.[1] ??
    /^https?:\/\/(?:www\.)?zenodo\.org\/records?\/(\d{1,12})(?:[/?]|$)/.exec(url ?? "")?.[1]
  );
}
