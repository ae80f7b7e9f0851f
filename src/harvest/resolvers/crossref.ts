import { z } from "zod";
import { kindByAddress } from "../identifiers/web-url.ts";
import { findingOf, idsFrom, type Place, verdictOf, versionOf } from "./finding.ts";
import { anyOf, aside, readJson, text } from "./json-response.ts";
import { inPath } from "./request-url.ts";
import type { Resolver } from "./resolver.ts";

const link = z.object({
  URL: text,
  "content-type": aside,
  "content-version": aside,
  "intended-application": aside,
});
const licence = z.object({ URL: aside, "content-version": aside });

const record = z.object({
  message: z.object({
    DOI: text,
    title: anyOf(z.string()).catch([]),
    issued: z
      .object({ "date-parts": z.array(z.array(z.number().nullable())) })
      .nullish()
      .catch(undefined),
    link: anyOf(link),
    license: anyOf(licence).catch([]),
  }),
});

/**
 * Publishers' own links. Its landing page is not among the candidates: doi.org leads there, and `landing_page` asks it.
 */
export const crossref: Resolver = {
  name: "crossref",
  needs: [],
  ask({ ids: { doi } }) {
    return doi === undefined ? undefined : { url: `https://api.crossref.org/works/${inPath(doi)}`, role: "metadata" };
  },
  read(answer, work) {
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const read = readJson(answer, record);
    if ("trouble" in read) return read.trouble;
    const { message } = read.data;
    const licenceOf = (version: string | null | undefined) =>
      (message.license.find(each => each["content-version"] === version) ?? message.license[0])?.URL;
    const places = message.link.flatMap((each): readonly Place[] => {
      const kind = kindOf(each);
      const version = each["content-version"];
      return kind === undefined
        ? []
        : [{ url: each.URL, kind, version: versionOf(version), licence: licenceOf(version) }];
    });
    return findingOf(work, places, {
      otherwise: "no-copy",
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
  const promised = kindByAddress(each.URL ?? "");
  return type === "unspecified" && promised !== "landing" ? promised : undefined;
}
