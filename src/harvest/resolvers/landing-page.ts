import { challengeInFields, challengeOf } from "../challenge-page.ts";
import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { canonicalWebUrl, kindByUrl } from "../identifiers/web-url.ts";
import type { Work } from "../work.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate } from "./finding.ts";
import { hasRelation, linksIn } from "./link-header.ts";
import { beginsAsPdf, kindOfType, linksOfPage } from "./page-links.ts";
import { encodedPath } from "./request-url.ts";
import type { Finding, Resolver, ResolverResponse } from "./resolver.ts";

/** Pages with the full text have one or two megabytes. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The page of the work: the URL that the user gave, or the target of the DOI. Signposting links (`Link` header) come
 * first, because they are made for programs; then the metadata for search engines. Links in the text are not followed:
 * they often lead to supplements or advertisements.
 */
export const landingPage: Resolver = {
  name: "landing_page",
  needs: [],
  inferred(work) {
    const { url } = work.ids;
    const kind = kindByUrl(url ?? "");
    if (url === undefined || kind === "landing") return undefined;
    return findingOf(work, [{ url, kind }], { noneReason: "no-copy" });
  },
  requestFor({ ids: { url, doi, arxiv } }) {
    const name = doi ?? (arxiv && doiOfArxivId(arxiv));
    const page = url ?? (name && `https://doi.org/${encodedPath(name)}`);
    if (page === undefined) return undefined;
    const headers = { accept: "text/html, application/xhtml+xml, application/pdf;q=0.9, */*;q=0.1" };
    return { url: page, role: "landing", headers, maxBytes: PAGE_BYTES_MAX };
  },
  parse(response, work) {
    const { status, headers, body } = response;
    // A page about a missing work may have a form to report it, with a CAPTCHA.
    const isMissing = status === 404 || status === 410;
    const challenge = isMissing ? undefined : challengeOf(status, headers, body);
    if (challenge === undefined) return findingForStatus(response) ?? parseContent(response, work);
    // A page that links to its files is no challenge: its CAPTCHA belongs to a form.
    const mayBePage = status === 200 && challengeInFields(headers) === undefined;
    const finding = mayBePage ? parseContent(response, work) : undefined;
    return finding?.kind === "found" ? finding : { kind: "failure", reason: "challenge-page", message: challenge };
  },
};

function parseContent(response: ResolverResponse, work: Work): Finding {
  const type = response.headers["content-type"];
  // Repositories send files as `application/octet-stream`, without a type, or as HTML.
  const kind = kindOfType(type) ?? (beginsAsPdf(response.body) ? "pdf" : undefined);
  if (kind !== undefined) return findingOf(work, [{ url: response.url, kind }], { noneReason: "no-copy" });
  const signposts = signpostsOf(response);
  const isPage = type === undefined || /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(type);
  return isPage ? parsePage(response, work, signposts) : findingOf(work, signposts, { noneReason: "no-copy" });
}

function parsePage(response: ResolverResponse, work: Work, signposts: readonly RawCandidate[]): Finding {
  const page = linksOfPage(response.body, response.url);
  const rawCandidates = [...signposts, ...page.rawCandidates].map(rawCandidate => ({
    licence: page.licence,
    ...rawCandidate,
  }));
  // A link to this page itself would be requested again and again.
  const elsewhere = rawCandidates.filter(
    ({ url, kind }) => kind === "pdf" || canonicalWebUrl(url) !== canonicalWebUrl(response.url),
  );
  return findingOf(work, elsewhere, {
    noneReason: "no-copy",
    ids: work.ids.doi === undefined ? idsFrom({ doi: page.doi?.replace(/^doi:\s*/i, "") }) : {},
    metadata: { title: page.title, year: page.date },
  });
}

function signpostsOf({ headers, url }: ResolverResponse): readonly RawCandidate[] {
  return linksIn(headers["link"]).flatMap((link): readonly RawCandidate[] => {
    const kind = kindOfType(link.parameters["type"]);
    const isCopy = hasRelation(link, "item") || hasRelation(link, "alternate");
    return kind !== undefined && isCopy ? [{ url: canonicalWebUrl(link.target, url), kind }] : [];
  });
}
