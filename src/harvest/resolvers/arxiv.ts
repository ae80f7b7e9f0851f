import { withoutVersion } from "../identifiers/arxiv-id.ts";
import type { Work } from "../work.ts";
import { findingForStatus, findingOf, idsFrom, type RawCandidate, unreadable } from "./finding.ts";
import { RESPONSE_CHARS_MAX } from "./json-response.ts";
import { eachElement } from "./markup.ts";
import { urlWithQuery } from "./request-url.ts";
import type { Finding, Resolver } from "./resolver.ts";

interface FeedEntry {
  id?: string;
  title?: string;
  published?: string;
  doi?: string;
  pdf?: string | undefined;
  authors?: readonly { readonly name: string }[];
}

/** 2000 are allowed; one feed of 100 entries has some 300 kB. */
const BATCH_MAX = 100;

export const arxiv: Resolver = {
  name: "arxiv",
  needs: [],
  isRepository: true,
  offers: ["source"],
  inferred(work) {
    const { arxiv: id } = work.ids;
    if (id === undefined) return undefined;
    const stated = { version: "submitted" } as const;
    const pdf: RawCandidate = { url: `https://arxiv.org/pdf/${id}`, kind: "pdf", ...stated };
    const source: RawCandidate = { url: `https://arxiv.org/src/${id}`, kind: "file", role: "source", ...stated };
    return findingOf(work, [pdf, source], { noneReason: "no-copy" });
  },
  requestFor({ ids: { arxiv: id } }) {
    if (id === undefined) return undefined;
    return {
      url: urlWithQuery("https://export.arxiv.org/api/query", { id_list: id, max_results: "1" }),
      role: "metadata",
    };
  },
  parse(response, work) {
    // For a malformed id the service sends 400 and a feed about the error.
    if (response.status === 400) return { kind: "none", reason: "unknown-work" };
    const statusFinding = findingForStatus(response);
    if (statusFinding !== undefined) return statusFinding;
    const entries = entriesOf(response.body);
    if (entries === undefined) return unreadable(response, "no Atom feed");
    const [entry] = entries.filter(each => isOf(each, work));
    return entry === undefined ? { kind: "none", reason: "unknown-work" } : findingIn(entry, work);
  },
  batch: {
    maxWorks: BATCH_MAX,
    groupOf: ({ ids: { arxiv: id } }) => (id === undefined ? undefined : "arxiv"),
    requestFor(works) {
      const ids = works.map(({ ids: { arxiv: id } }) => id).join(",");
      const query = { id_list: ids, max_results: String(BATCH_MAX) };
      return { url: urlWithQuery("https://export.arxiv.org/api/query", query), role: "metadata" };
    },
    parse(response, works) {
      const statusFinding = findingForStatus(response);
      if (statusFinding !== undefined) return statusFinding;
      const entries = entriesOf(response.body);
      if (entries === undefined) return unreadable(response, "no Atom feed");
      return works.map(work => {
        const entry = entries.find(each => isOf(each, work));
        return entry === undefined ? { kind: "none", reason: "unknown-work" } : findingIn(entry, work);
      });
    },
  },
};

/** Undefined if the body is not an Atom feed. */
function entriesOf(body: string): readonly FeedEntry[] | undefined {
  const entries: FeedEntry[] = [];
  let current: FeedEntry = {};
  let isFeed = false;
  eachElement(body, "xml", { chars: RESPONSE_CHARS_MAX }, ({ name, parent, attributes, text }) => {
    if (name === "feed") isFeed = true;
    if (name === "entry") {
      if (entries.length < BATCH_MAX) entries.push(current);
      current = {};
    }
    if (name === "name" && parent === "author") current.authors = [...(current.authors ?? []), { name: text }];
    if (parent !== "entry") return;
    if (name === "id" || name === "title" || name === "published") current[name] = text;
    if (name === "arxiv:doi") current.doi = text;
    if (name === "link" && attributes["title"] === "pdf") current.pdf = attributes["href"];
  });
  return isFeed ? entries : undefined;
}

/** False for the entry by which arXiv reports an error. */
function isOf({ id = "" }: FeedEntry, { ids }: Work): boolean {
  const named = idsFrom({ arxiv: /\/abs\/(.+)$/.exec(id.trim())?.[1] }).arxiv;
  return named !== undefined && withoutVersion(named) === withoutVersion(ids.arxiv ?? "");
}

function findingIn({ pdf, title, published, doi, authors }: FeedEntry, work: Work): Finding {
  const rawCandidates: readonly RawCandidate[] = [{ url: pdf, kind: "pdf", version: "submitted" }];
  // A withdrawn paper has an entry and no file.
  return findingOf(work, rawCandidates, {
    noneReason: "no-copy",
    ids: idsFrom({ doi }),
    metadata: { title, year: published, authors, type: "preprint", venue: "arXiv" },
  });
}
