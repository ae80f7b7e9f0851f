import { doiOfArxivId } from "../identifiers/arxiv-id.ts";
import { kindByAddress, webAddress } from "../identifiers/web-url.ts";
import type { Work } from "../work.ts";
import { findingOf, idsFrom, type Place, verdictOf } from "./finding.ts";
import { hasRelation, linksIn } from "./link-header.ts";
import { kindOfType, linksOfPage } from "./page-links.ts";
import { inPath } from "./request-url.ts";
import type { Finding, Resolver, ResolverAnswer } from "./resolver.ts";

/** Pages with the whole text in them have one or two megabytes. */
const PAGE_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The page of the work itself: the address that was given, or where its DOI leads. Signposts come first, because they
 * are made for programs; then what the page tells search engines. Anchors in its text are not followed: what looks like
 * the paper there is a supplement or an advertisement as often.
 */
export const landingPage: Resolver = {
  name: "landing_page",
  needs: [],
  know(work) {
    const { url } = work.ids;
    const kind = kindByAddress(url ?? "");
    if (url === undefined || kind === "landing") return undefined;
    return findingOf(work, [{ url, kind }], { otherwise: "no-copy" });
  },
  ask({ ids: { url, doi, arxiv } }) {
    const name = doi ?? (arxiv && doiOfArxivId(arxiv));
    const page = url ?? (name && `https://doi.org/${inPath(name)}`);
    if (page === undefined) return undefined;
    const headers = { accept: "text/html, application/xhtml+xml, application/pdf;q=0.9, */*;q=0.1" };
    return { url: page, role: "landing", headers, maxBytes: PAGE_BYTES_MAX };
  },
  read(answer, work) {
    if (isChallenge(answer)) {
      const message = `${URL.parse(answer.url)?.host ?? "the page"} wants a browser with a person before it`;
      return { kind: "trouble", reason: "refused", message };
    }
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const type = answer.headers["content-type"];
    const kind = kindOfType(type);
    if (kind !== undefined) return findingOf(work, [{ url: answer.url, kind }], { otherwise: "no-copy" });
    const signposts = signpostsOf(answer);
    const isPage = type === undefined || /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(type);
    return isPage ? readPage(answer, work, signposts) : findingOf(work, signposts, { otherwise: "no-copy" });
  },
};

function readPage(answer: ResolverAnswer, work: Work, signposts: readonly Place[]): Finding {
  const page = linksOfPage(answer.body, answer.url);
  const places = [...signposts, ...page.places].map(place => ({ licence: page.licence, ...place }));
  // What leads back to this page would be looked at again, and again.
  const elsewhere = places.filter(({ url, kind }) => kind === "pdf" || webAddress(url) !== webAddress(answer.url));
  return findingOf(work, elsewhere, {
    otherwise: "no-copy",
    ids: work.ids.doi === undefined ? idsFrom({ doi: page.doi?.replace(/^doi:\s*/i, "") }) : {},
    title: page.title,
    year: page.date,
  });
}

function signpostsOf({ headers, url }: ResolverAnswer): readonly Place[] {
  return linksIn(headers["link"]).flatMap((link): readonly Place[] => {
    const kind = kindOfType(link.parameters["type"]);
    const isCopy = hasRelation(link, "item") || hasRelation(link, "alternate");
    return kind !== undefined && isCopy ? [{ url: webAddress(link.target, url), kind }] : [];
  });
}

/** Cloudflare's, AWS's, Anubis' and PMC's ways to keep programs out, which we respect. */
function isChallenge({ status, headers, body }: ResolverAnswer): boolean {
  if (headers["cf-mitigated"] === "challenge" || headers["x-amzn-waf-action"] !== undefined) return true;
  if (status === 202 && body.trim() === "") return true;
  const title = /<title[^>]{0,200}>([^<]{0,200})/i.exec(body.slice(0, 16_384))?.[1] ?? "";
  return /just a moment|making sure you(?:'|&#39;|’)re not a bot|attention required! \| cloudflare|preparing to download/i.test(
    title,
  );
}
