/** Addresses that are no API: articles' pages, files, redirects, and the traps that lie where a file should be. */
import { type Article, articleFile } from "./article-file.ts";
import { escapeXml, html, redirect, reply, type SimulatedReply, type SimulatedRequest } from "./exchange.ts";
import { fileReply } from "./file-reply.ts";

/** Where on an article's page its file is named. */
export type Hint = "signposting" | "citation-meta" | "alternate" | "json-ld";

export type Page =
  | { readonly kind: "pdf"; readonly manner?: "plain" | "attachment" | "bare" | "truncated-once" }
  | { readonly kind: "redirect"; readonly to: string; readonly status?: number }
  | { readonly kind: "article"; readonly pdf: string | undefined; readonly hints: readonly Hint[] }
  /** HTML where a PDF was promised, even by its type. */
  | { readonly kind: "viewer" }
  /** A page that wants a browser's proof. */
  | { readonly kind: "challenge" }
  /** A firewall's 202 with nothing in it. */
  | { readonly kind: "empty-202" }
  /** Sends everyone without its cookie round in circles. */
  | { readonly kind: "cookie-loop" }
  | { readonly kind: "gone" };

/** A page, and the work it is about. */
export interface PlacedPage {
  readonly page: Page;
  readonly article: Article;
}

export function pageReply(visit: SimulatedRequest, { page, article }: PlacedPage): SimulatedReply {
  switch (page.kind) {
    case "pdf":
      return pdfReply(visit, page.manner ?? "plain", article);
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
      return redirect(`https://${visit.host}${visit.path}?cookieAbsent=${visit.earlier % 2}`, 302, {
        "set-cookie": "seen=1; path=/",
      });
    case "gone":
      return html("Gone", "<h1>This article has moved</h1>", 410);
  }
}

function pdfReply(
  visit: SimulatedRequest,
  manner: "plain" | "attachment" | "bare" | "truncated-once",
  article: Article,
) {
  const body = articleFile(article);
  const isBare = manner === "bare";
  const whole = fileReply(visit, {
    body,
    type: manner === "attachment" ? "application/octet-stream" : "application/pdf",
    etag: isBare ? undefined : article.md5,
    modifiedMs: isBare ? undefined : article.modifiedMs,
    takesRanges: !isBare,
    headers: manner === "attachment" ? { "content-disposition": `attachment; filename="article.pdf"` } : {},
  });
  const isCut = manner === "truncated-once" && visit.earlier === 0 && whole.status === 200;
  return isCut ? { ...whole, cutAtBytes: Math.floor(body.length / 2) } : whole;
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
