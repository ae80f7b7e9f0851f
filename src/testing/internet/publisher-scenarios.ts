/** Scenarios of works whose file is, or was, at a publisher. */
import type { ServiceName } from "./copy.ts";
import type { Hint, Page } from "./page.ts";
import {
  copy,
  IN_REPOSITORY,
  publisherOf,
  REPOSITORIES,
  type ScenarioDraft,
  type ScenarioWork,
} from "./scenario-work.ts";

export const CDN = "cdn.papermill.example";
export const LINK_HOP = "links.papermill.example";

/** Services that index the works that publishers register at Crossref. */
export const CROSSREF_INDEXES: readonly ServiceName[] = ["crossref", "openalex", "unpaywall", "semantic_scholar"];

export function atPublisher(
  draft: ScenarioDraft,
  { page, via }: { page: Page; via: readonly ServiceName[] },
): ScenarioWork {
  const { doi, landing, pdf } = publisherOf(draft);
  const article: Page = { kind: "article", pdf, hints: ["citation-meta"] };
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, [...via, "landing_page"])],
    pages: [
      [landing, article],
      [pdf, page],
    ],
  };
}

/** Only the article page names the file; the services name the page. */
export function onLandingPage(draft: ScenarioDraft, hints: readonly Hint[]): ScenarioWork {
  const { doi, landing, pdf } = publisherOf(draft);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [
      copy(pdf, ["landing_page"]),
      copy(landing, ["unpaywall", "openalex", "semantic_scholar", "doaj", "openaire"], {
        kind: "landing",
        isGood: false,
      }),
    ],
    pages: [
      [landing, { kind: "article", pdf, hints }],
      [pdf, { kind: "pdf" }],
    ],
  };
}

export function redirectChain(draft: ScenarioDraft): ScenarioWork {
  const { doi, landing, pdf } = publisherOf(draft);
  const hop = `https://${LINK_HOP}/to/${draft.number}`;
  const plain = `http://${LINK_HOP}/old/${draft.number}`;
  const end = `https://${CDN}/${draft.number}/article.pdf?token=${draft.number}%2Bx`;
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, [...CROSSREF_INDEXES, "landing_page"])],
    pages: [
      [landing, { kind: "article", pdf, hints: ["citation-meta"] }],
      [pdf, { kind: "redirect", to: plain, status: 301 }],
      [plain, { kind: "redirect", to: hop, status: 307 }],
      [hop, { kind: "redirect", to: end }],
      [end, { kind: "pdf" }],
    ],
  };
}

/**
 * The copy that all services name is not the file. If `hasAnother`, a repository has a good copy; otherwise there is
 * none.
 */
export function wrongFirstCopy(draft: ScenarioDraft, page: Page, hasAnother: boolean): ScenarioWork {
  const { doi, landing, pdf } = publisherOf(draft);
  const other = `https://${draft.random.pick(REPOSITORIES)}/bitstream/${draft.number}/paper.pdf`;
  const first = copy(pdf, [...CROSSREF_INDEXES, "landing_page"], { isGood: false });
  const second = copy(other, ["unpaywall", "openalex", "core"], IN_REPOSITORY);
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: hasAnother ? [first, second] : [first],
    pages: [
      [landing, { kind: "article", pdf, hints: ["citation-meta"] }],
      [pdf, page],
      [`${pdf}?cookieAbsent=0`, page],
      [`${pdf}?cookieAbsent=1`, page],
      ...(hasAnother ? [[other, { kind: "pdf" }] as const] : []),
    ],
  };
}

/** The publisher has deleted the file, and the Wayback Machine has a capture. */
export function archived(draft: ScenarioDraft): ScenarioWork {
  const { doi, landing, pdf } = publisherOf(draft);
  const capture = `https://web.archive.org/web/${draft.year}0401120000id_/${pdf}`;
  return {
    ids: { doi },
    registrar: "crossref",
    landing,
    copies: [copy(pdf, CROSSREF_INDEXES, { isGood: false }), copy(capture, ["wayback"])],
    pages: [
      [landing, { kind: "gone" }],
      [pdf, { kind: "gone" }],
      [capture, { kind: "pdf", manner: "bare" }],
    ],
  };
}

export function unknownDoi(draft: ScenarioDraft): ScenarioWork {
  return {
    ids: { doi: `10.5555/nowhere.${draft.number}` },
    registrar: "none",
    landing: undefined,
    copies: [],
    pages: [],
  };
}
