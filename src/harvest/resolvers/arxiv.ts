import { withoutVersion } from "../identifiers/arxiv-id.ts";
import type { Work } from "../work.ts";
import { findingOf, idsFrom, type Place, unreadable, verdictOf } from "./finding.ts";
import { ANSWER_CHARS_MAX } from "./json-response.ts";
import { eachElement } from "./markup.ts";
import { address } from "./request-url.ts";
import type { Finding, Resolver } from "./resolver.ts";

interface Entry {
  id?: string;
  title?: string;
  published?: string;
  doi?: string;
  pdf?: string | undefined;
}

export const arxiv: Resolver = {
  name: "arxiv",
  needs: [],
  know(work) {
    const { arxiv: id } = work.ids;
    if (id === undefined) return undefined;
    return findingOf(work, [{ url: `https://arxiv.org/pdf/${id}`, kind: "pdf", version: "submitted" }], {
      otherwise: "no-copy",
    });
  },
  ask({ ids: { arxiv: id } }) {
    if (id === undefined) return undefined;
    return { url: address("https://export.arxiv.org/api/query", { id_list: id, max_results: "1" }), role: "metadata" };
  },
  read(answer, work) {
    // A malformed id is answered with 400 and a feed about the error.
    if (answer.status === 400) return { kind: "none", reason: "unknown-work" };
    const verdict = verdictOf(answer);
    if (verdict !== undefined) return verdict;
    const entries = entriesOf(answer.body);
    if (entries === undefined) return unreadable(answer, "something that is not an Atom feed");
    const [entry] = entries.filter(each => isOf(each, work));
    return entry === undefined ? { kind: "none", reason: "unknown-work" } : findingIn(entry, work);
  },
};

/** Undefined for what is no feed at all. */
function entriesOf(body: string): readonly Entry[] | undefined {
  const entries: Entry[] = [];
  let now: Entry = {};
  let isFeed = false;
  eachElement(body, "xml", { chars: ANSWER_CHARS_MAX }, ({ name, parent, attributes, text }) => {
    if (name === "feed") isFeed = true;
    if (name === "entry") {
      if (entries.length < 10) entries.push(now);
      now = {};
    }
    if (parent !== "entry") return;
    if (name === "id" || name === "title" || name === "published") now[name] = text;
    if (name === "arxiv:doi") now.doi = text;
    if (name === "link" && attributes["title"] === "pdf") now.pdf = attributes["href"];
  });
  return isFeed ? entries : undefined;
}

/** An unknown id gives an empty feed, an error an entry of its own; both are about no work. */
function isOf({ id = "" }: Entry, { ids }: Work): boolean {
  const named = idsFrom({ arxiv: /\/abs\/(.+)$/.exec(id.trim())?.[1] }).arxiv;
  return named !== undefined && withoutVersion(named) === withoutVersion(ids.arxiv ?? "");
}

function findingIn({ pdf, title, published, doi }: Entry, work: Work): Finding {
  const places: readonly Place[] = [{ url: pdf, kind: "pdf", version: "submitted" }];
  // A withdrawn paper has an entry and no file.
  return findingOf(work, places, { otherwise: "no-copy", ids: idsFrom({ doi }), title, year: published });
}
