/** Pages that are not part of an API: article pages, files, redirects, and pages sent instead of a file. */
import { type Article, articleFile } from "./article-file.ts";
import { escapeXml, html, redirect, reply, type SimulatedReply, type SimulatedRequest } from "./exchange.ts";
import { fileReply } from "./file-reply.ts";

/** How an article page names its file. */
export type Hint = "signposting" | "citation-meta" | "alternate" | "json-ld";

export type Page =
  /** `bare`: without validators and ranges. `truncated-once`: truncated on the first request. */
  | { readonly kind: "pdf"; readonly manner?: "plain" | "attachment" | "bare" | "truncated-once" }
  | { readonly kind: "redirect"; readonly to: string; readonly status?: number }
  | { readonly kind: "article"; readonly pdf: string | undefined; readonly hints: readonly Hint[] }
  /** HTML instead of a PDF, with the content type of a PDF. */
  | { readonly kind: "viewer" }
  /** A bot check for browsers. */
  | { readonly kind: "challenge" }
  /** The empty 202 of a web application firewall. */
  | { readonly kind: "empty-202" }
  /** Redirects in a loop, as some sites do with a client that sends no cookies. */
  | { readonly kind: "cookie-loop" }
  | { readonly kind: "gone" };

/** A page, and the work it is about. */
export interface PlacedPage {
  readonly page: Page;
  readonly article: Article;
}

export function pageReply(request: SimulatedRequest, { page, article }: PlacedPage): SimulatedReply {
  switch (page.kind) {
    case "pdf":
      return pdfReply(request, page.manner ?? "plain", article);
    case "redirect":
      return redirect(page.to, page.status ?? 302);
    case "article":
      return articleReply(page, article);
    case "viewer":
      return reply(viewer(article.title), "application/pdf", 200, {});
    case "challenge":
      return html("Just a moment...", '<script src="/cdn-cgi/challenge-platform/h/b.js"></script>', 403, {
        "cf-mitigated": "challenge",
        server: "cloudflare",
      });
    case "empty-202":
      return reply("", "text/html", 202, { "x-amzn-waf-action": "challenge" });
    case "cookie-loop":
      return redirect(`https://${request.host}${request.path}?cookieAbsent=${request.earlierRequests % 2}`, 302, {
        "set-cookie": "seen=1; path=/",
      });
    case "gone":
      return html("Gone", "<h1>This article has moved</h1>", 410);
  }
}

function pdfReply(
  request: SimulatedRequest,
  manner: "plain" | "attachment" | "bare" | "truncated-once",
  article: Article,
) {
  const body = articleFile(article);
  const isBare = manner === "bare";
  const complete = fileReply(request, {
    body,
    type: manner === "attachment" ? "application/octet-stream" : "application/pdf",
    etag: isBare ? undefined : article.md5,
    modifiedMs: isBare ? undefined : article.modifiedMs,
    takesRanges: !isBare,
    headers: manner === "attachment" ? { "content-disposition": `attachment; filename="article.pdf"` } : {},
  });
  const isTruncated = manner === "truncated-once" && request.earlierRequests === 0 && complete.status === 200;
  return isTruncated ? { ...complete, cutAtBytes: Math.floor(body.length / 2) } : complete;
}

function articleReply({ pdf, hints }: Page & { readonly kind: "article" }, { title, name }: Article): SimulatedReply {
  const has = (hint: Hint) => pdf !== undefined && hints.includes(hint);
  const shown = escapeXml(title);
  const head = [
    `<title>${shown}</title>`,
    `<meta name="citation_title" content="${shown}">`,
    `<meta name="citation_doi" content="${escapeXml(name)}">`,
    has("citation-meta") ? `<meta name="citation_pdf_url" content="${escapeXml(pdf ?? "")}">` : "",
    has("alternate") ? `<link rel="alternate" type="application/pdf" href="${escapeXml(pdf ?? "")}">` : "",
    has("json-ld")
      ? `<script type="application/ld+json">${JSON.stringify({
          "@context": "https://schema.org",
          "@type": "ScholarlyArticle",
          encoding: [{ "@type": "MediaObject", encodingFormat: "application/pdf", contentUrl: pdf }],
        })}</script>`
      : "",
  ].filter(line => line !== "");
  const body = `<!doctype html>\n<html lang="en">\n<head>\n${head.join("\n")}\n</head>\n<body><h1>${shown}</h1></body>\n</html>\n`;
  const link = `<https://doi.org/${name}>; rel="cite-as", <${pdf}>; rel="item"; type="application/pdf"`;
  return reply(body, "text/html; charset=utf-8", 200, has("signposting") ? { link } : {});
}

function viewer(title: string): string {
  return `<!doctype html>\n<html lang="en"><head><title>${escapeXml(title)}</title></head>\n<body><embed src="/viewer/article" type="application/pdf"><p>Sign in to read on.</p></body></html>\n`;
}
