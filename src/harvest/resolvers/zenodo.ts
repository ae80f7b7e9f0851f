import { z } from "zod";
import type { WorkIds } from "../work.ts";
import { documentsFirst, kindByName } from "./file-names.ts";
import { findingOf, idsFrom, md5, type Place, verdictOf } from "./finding.ts";
import { anyOf, aside, readJson, text } from "./json-response.ts";
import type { Question, Resolver } from "./resolver.ts";

const record = z.object({
  id: z.union([z.number(), z.string()]),
  doi: text,
  metadata: z.object({
    title: aside,
    publication_date: aside,
    access_right: aside,
    license: z.object({ id: aside }).nullish().catch(undefined),
  }),
  files: anyOf(z.object({ key: z.string(), size: z.number().nullish(), checksum: text })),
});

/** Asked only for its own records: by other DOIs they are found with a search, which is allowed thirty times a minute. */
export const zenodo: Resolver = {
  name: "zenodo",
  needs: [],
  ask({ ids }): Question | undefined {
    const id = recordOf(ids);
    return id === undefined ? undefined : { url: `https://zenodo.org/api/records/${id}`, role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, record);
    if ("trouble" in read) return read.trouble;
    const { id, doi, metadata, files } = read.data;
    const isOpen = (metadata.access_right ?? "open") === "open";
    const places = documentsFirst(files, ({ key, size }) => ({ name: key, bytes: size })).map(
      ({ key, size, checksum }): Place => ({
        // The address that the record itself gives takes no ranges; this one does.
        url: /^\d+$/.test(String(id)) ? `https://zenodo.org/records/${id}/files/${encodeURIComponent(key)}` : undefined,
        kind: kindByName(key) ?? "pdf",
        licence: metadata.license?.id,
        checksum: md5(checksum),
        bytes: size ?? undefined,
      }),
    );
    return findingOf(work, isOpen ? places : [], {
      otherwise: isOpen ? "no-copy" : "not-open",
      ids: idsFrom({ doi }),
      title: metadata.title,
      year: metadata.publication_date,
    });
  },
};

function recordOf({ doi, url }: WorkIds): string | undefined {
  return (
    /^10\.5281\/zenodo\.(\d{1,12})$/.exec(doi ?? "")?.[1] ??
    /^https?:\/\/(?:www\.)?zenodo\.org\/records?\/(\d{1,12})(?:[/?]|$)/.exec(url ?? "")?.[1]
  );
}
