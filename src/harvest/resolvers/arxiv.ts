import { withoutVersion } from "../identifiers/arxiv-id.ts";
import type { Work } from "../work.ts";
import { findingForBatchStatus } from "./batch-findings.ts";
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
  readonly authors: { readonly name: string }[];
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
    return findingAmong(entries, work);
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
      const statusFinding = findingForBatchStatus(response);
      if (statusFinding !== undefined) return statusFinding;
      const entries = entriesOf(response.body);
      if (entries === undefined) return unreadable(response, "no Atom feed");
      return works.map(work => findingAmong(entries, work));
    },
  },
};

/** Undefined if the body is not an Atom feed. */
function entriesOf(body: string): readonly FeedEntry[] | undefined {
  const entries: FeedEntry[] = [];
  let current: FeedEntry = { authors: [] };
  let isFeed = false;
  eachElement(body, "xml", RESPONSE_CHARS_MAX, ({ name, parent, attributes, text }) => {
    if (name === "feed") isFeed = true;
    if (name === "entry") {
      if (entries.length < BATCH_MAX) entries.push(current);
      current = { authors: [] };
    }
    if (name === "name" && parent === "author") current.authors.push({ name: text });
    if (parent !== "entry") return;
    if (name === "id" || name === "title" || name === "published") current[name] = text;
    if (name === "arxiv:doi") current.doi = text;
    if (name === "link" && attributes["title"] === "pdf") current.pdf = attributes["href"];
  });
  return isFeed ? entries : undefined;
}

/** A batch may have asked for several versions of one paper. */
function findingAmong(entries: readonly FeedEntry[], work: Work): Finding {
  const { arxiv: wanted = "" } = work.ids;
  const versions = entries
    .map(entry => ({ entry, id: idOf(entry) ?? "" }))
    .filter(({ id }) => id !== "" && withoutVersion(id) === withoutVersion(wanted))
    .toSorted((one, other) => versionNumber(other.id) - versionNumber(one.id));
  const found = versions.find(({ id }) => id === wanted) ?? versions[0];
  return found === undefined ? { kind: "none", reason: "unknown-work" } : findingIn(found.entry, work);
}

/** Undefined for the entry by which arXiv reports an error. */
function idOf({ id = "" }: FeedEntry): string | undefined {
  return idsFrom({ arxiv: /\/abs\/(.+)$/.exec(id.trim())?.[1] }).arxiv;
}

function versionNumber(id: string): number {
  return Number(/v(\d+)$/.exec(id)?.[1] ?? 0);
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
