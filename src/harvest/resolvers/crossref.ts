import { z } from "zod";
import { kindByUrl } from "../identifiers/web-url.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, versionOf } from "./finding.ts";
import { lenientText, optionalListOf, optionalText, readJson } from "./json-response.ts";
import { encodedPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const link = z.object({
  URL: optionalText,
  "content-type": lenientText,
  "content-version": lenientText,
  "intended-application": lenientText,
});
const licence = z.object({ URL: lenientText, "content-version": lenientText });

const record = z.object({
  message: z.object({
    DOI: optionalText,
    title: optionalListOf(z.string()).catch([]),
    issued: z
      .object({ "date-parts": z.array(z.array(z.number().nullable())) })
      .nullish()
      .catch(undefined),
    link: optionalListOf(link),
    license: optionalListOf(licence).catch([]),
  }),
});

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
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const parsed = readJson(response, record);
    if ("failure" in parsed) return parsed.failure;
    const { message } = parsed.data;
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

/** Undefined for links with another purpose: hosts refuse links for similarity checking to other programs. */
function kindOf(each: z.infer<typeof link>): "pdf" | "xml" | "html" | undefined {
  if (!/^(?:text-mining|syndication)$/.test(each["intended-application"] ?? "")) return undefined;
  const type = each["content-type"] ?? "unspecified";
  if (type === "application/pdf") return "pdf";
  if (/^(?:application|text)\/xml$/.test(type)) return "xml";
  if (type === "text/html") return "html";
  const promised = kindByUrl(each.URL ?? "");
  return type === "unspecified" && promised !== "landing" ? promised : undefined;
}
