import { z } from "zod";
import { kindByUrl } from "../identifiers/web-url.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, optionalListOf, readJson, text } from "./json-response.ts";
import { encodedPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const link = z.object({
  URL: text,
  "content-type": lenientText,
  "content-version": lenientText,
  "intended-application": lenientText,
});
const licence = z.object({ URL: lenientText, "content-version": lenientText });

const record = z.object({
  message: z.object({
    DOI: text,
    title: optionalListOf(z.string()).catch([]),
    issued: z
      .object({ "date-parts": z.array(z.array(z.number().nullable())) })
      .nullish()
      .catch(undefined),
    link: optionalListOf(link),
    license: optionalListOf(licence).catch([]),
  }),
});

/**
 * Publishers' own links. Its landing page is not among the candidates: doi.org leads there, and `landing_page` asks it.
 */
export const crossref: Resolver = {
  name: "crossref",
  needs: [],
  requestFor({ ids: { doi } }) {
    return doi === undefined
      ? undefined
      : { url: `https://api.crossref.org/works/${encodedPath(doi)}`, role: "metadata" };
  },
  read(response, work) {
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const read = readJson(response, record);
    if ("failure" in read) return read.failure;
    const { message } = read.data;
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
      title: message.title[0],
      year: message.issued?.["date-parts"][0]?.[0],
    });
  },
};

/** Undefined for what is not meant for us: links for plagiarism checkers are refused to everybody else. */
function kindOf(each: z.infer<typeof link>): "pdf" | "xml" | "html" | undefined {
  if (!/^(?:text-mining|syndication)$/.test(each["intended-application"] ?? "")) return undefined;
  const type = each["content-type"] ?? "unspecified";
  if (type === "application/pdf") return "pdf";
  if (/^(?:application|text)\/xml$/.test(type)) return "xml";
  if (type === "text/html") return "html";
  const promised = kindByUrl(each.URL ?? "");
  return type === "unspecified" && promised !== "landing" ? promised : undefined;
}
