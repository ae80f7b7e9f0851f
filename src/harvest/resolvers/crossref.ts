import { z } from "zod";
import { kindByUrl } from "../identifiers/web-url.ts";
import type { Work } from "../work.ts";
import { findingForBatchStatus, foundBy, isPlainDoi } from "./batch-findings.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, listOf, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath, urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver } from "./resolver.ts";

const link = z.object({
  URL: optionalText,
  "content-type": lenientText,
  "content-version": lenientText,
  "intended-application": lenientText,
});
const licence = z.object({ URL: lenientText, "content-version": lenientText });

const dateParts = z
  .object({ "date-parts": z.array(z.array(z.number().nullable())) })
  .nullish()
  .catch(undefined);
const author = z.object({ family: lenientText, given: lenientText, name: lenientText });

const record = z.object({
  DOI: optionalText,
  title: optionalListOf(z.string()).catch([]),
  author: optionalListOf(author).catch([]),
  issued: dateParts,
  "container-title": optionalListOf(z.string()).catch([]),
  publisher: lenientText,
  volume: lenientText,
  issue: lenientText,
  page: lenientText,
  type: lenientText,
  "updated-by": optionalListOf(z.object({ type: lenientText })).catch([]),
  link: optionalListOf(link),
  license: optionalListOf(licence).catch([]),
});
type CrossrefRecord = z.infer<typeof record>;

const single = z.object({ message: record });
const BATCH_MAX = 50;
const list = z.object({ message: z.object({ items: listOf(record, BATCH_MAX) }) });
/** Without an email address, Crossref allows one list and five records per second. The limit of the policy is 4/SECOND. */
const LIST_WEIGHT = 4;
const FIELDS = "DOI,title,author,issued,container-title,publisher,volume,issue,page,type,updated-by,link,license";

/** Links of publishers. The landing page is no candidate: the resolver `landing_page` requests it through doi.org. */
export const crossref: Resolver = {
  name: "crossref",
  needs: [],
  requestFor({ ids: { doi } }) {
    return doi === undefined
      ? undefined
      : { url: `https://api.crossref.org/works/${encodedPath(doi)}`, role: "metadata" };
  },
  parse(response, work) {
    const statusFinding = findingForStatus(response, "service");
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, single);
    return "failure" in parsed ? parsed.failure : findingIn(parsed.data.message, work);
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf: ({ ids: { doi } }) => (doi !== undefined && isPlainDoi(doi) ? "doi" : undefined),
    requestFor(works) {
      const filter = works.map(({ ids: { doi } }) => `doi:${doi}`).join(",");
      const query = { filter, select: FIELDS, rows: String(BATCH_MAX) };
      return { url: urlWithQuery("https://api.crossref.org/works", query), role: "metadata", weight: LIST_WEIGHT };
    },
    parse(response, works) {
      const statusFinding = findingForBatchStatus(response, "service");
      if (statusFinding !== undefined) return statusFinding;
      const parsed = readJson(response, list);
      if ("failure" in parsed) return parsed.failure;
      return foundBy(works, parsed.data.message.items, ({ DOI }) => idsFrom({ doi: DOI }), findingIn);
    },
  },
};

function findingIn(message: CrossrefRecord, work: Work): Finding {
  const licenceOf = (version: string | null | undefined) =>
    (message.license.find(each => each["content-version"] === version) ?? message.license[0])?.URL;
  const rawCandidates = message.link.flatMap((each): readonly RawCandidate[] => {
    const kind = kindOf(each);
    const version = each["content-version"];
    return kind === undefined
      ? []
      : [{ url: each.URL, kind, version: versionOf(version), licence: licenceOf(version) }];
  });
  return findingOf(work, rawCandidates, {
    noneReason: "no-copy",
    ids: idsFrom({ doi: message.DOI }),
    metadata: {
      title: message.title[0],
      year: message.issued?.["date-parts"][0]?.[0],
      authors: message.author,
      venue: message["container-title"][0],
      publisher: message.publisher,
      volume: message.volume,
      issue: message.issue,
      pages: message.page,
      type: message.type,
      licence: licenceOf("vor"),
      ...(message["updated-by"].some(({ type }) => type === "retraction") ? { isRetracted: true } : {}),
      registrar: "crossref",
    },
  });
}

/** Undefined for links with another purpose: hosts refuse links for similarity checking to other programs. */
function kindOf(each: z.infer<typeof link>): "pdf" | "xml" | "html" | undefined {
  if (!/^(?:text-mining|syndication)$/.test(each["intended-application"] ?? "")) return undefined;
  const type = each["content-type"] ?? "unspecified";
  if (type === "application/pdf") return "pdf";
  if (/^(?:application|text)\/xml$/.test(type)) return "xml";
  if (type === "text/html") return "html";
  const kindOfUrl = kindByUrl(each.URL ?? "");
  return type === "unspecified" && kindOfUrl !== "landing" ? kindOfUrl : undefined;
}
