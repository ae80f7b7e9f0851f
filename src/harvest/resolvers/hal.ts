import { z } from "zod";
import type { Work, WorkIds } from "../work.ts";
import { kindByName } from "./file-names.ts";
import { findingForStatus, findingOf, idsFrom, matchesDoi, type RawCandidate } from "./finding.ts";
import { lenientText, lenientYear, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { quotedPhrase, urlWithQuery } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const doc = z.object({
  halId_s: optionalText,
  doiId_s: optionalText,
  title_s: optionalListOf(z.string()).catch([]),
  publicationDateY_i: lenientYear,
  fileMain_s: optionalText,
  files_s: optionalListOf(z.string()),
  licence_s: lenientText,
  openAccess_bool: z.union([z.boolean(), z.string()]).nullish().catch(undefined),
});
const page = z.object({ response: z.object({ docs: listOf(doc, 25) }) });
const FIELDS = "halId_s,doiId_s,title_s,publicationDateY_i,fileMain_s,files_s,licence_s,openAccess_bool";

export const hal: Resolver = {
  name: "hal",
  needs: [],
  requestFor({ ids }) {
    const id = halIdOf(ids);
    const q = id !== undefined ? `halId_s:${quotedPhrase(id)}` : ids.doi && `doiId_s:${quotedPhrase(ids.doi)}`;
    if (q === undefined) return undefined;
    const query = { q, fl: FIELDS, rows: "5", wt: "json" };
    return { url: urlWithQuery("https://api.archives-ouvertes.fr/search/", query), role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, page);
    if ("failure" in parsed) return parsed.failure;
    const hit = parsed.data.response.docs.find(each => matchesWork(each, work));
    if (hit === undefined) return { kind: "none", reason: "unknown-work" };
    return findingOf(work, rawCandidatesOf(hit), {
      noneReason: "no-copy",
      ids: idsFrom({ doi: hit.doiId_s }),
      metadata: { title: hit.title_s[0], year: hit.publicationDateY_i },
    });
  },
};

/** The id (`hal-01234567`, `tel-…`, `inserm-…`) in a URL of these four portals. Other portals are not recognised. */
function halIdOf({ url }: WorkIds): string | undefined {
  return /^https?:\/\/(?:[\w-]+\.)*(?:hal\.science|archives-ouvertes\.fr|hal\.inserm\.fr|hal\.inrae\.fr)\/([a-z]+-\d{5,10})(?:v\d+)?(?:[/?]|$)/.exec(
    url ?? "",
  )?.[1];
}

function matchesWork({ halId_s, doiId_s }: z.infer<typeof doc>, work: Work): boolean {
  const id = halIdOf(work.ids);
  return id !== undefined ? halId_s === id : matchesDoi(work, doiId_s);
}

/** Empty if the file is under embargo. Without a deposited file the URL is undefined, and `findingOf` drops it. */
function rawCandidatesOf({
  fileMain_s,
  files_s,
  licence_s,
  openAccess_bool,
}: z.infer<typeof doc>): readonly RawCandidate[] {
  if (String(openAccess_bool ?? "true") === "false") return [];
  return [
    { url: fileMain_s, kind: "pdf", licence: licence_s },
    ...files_s.flatMap((url): readonly RawCandidate[] => {
      const kind = kindByName(URL.parse(url)?.pathname ?? "");
      return kind === undefined ? [] : [{ url, kind, licence: licence_s }];
    }),
  ];
}
